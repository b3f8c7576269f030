"""Text that every later step can encode."""

import re

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, which UTF-8 cannot hold.

    Cut-off emoji leave halves behind in JSON, and bytes that are no UTF-8 on the command line.
    """
    return _HALF_PAIR.sub("\ufffd", text)


def storable(text: str) -> str:
    """`text` with U+FFFD for what PostgreSQL cannot hold: NUL, and half a surrogate pair."""
    return whole_characters(text).replace("\0", "\ufffd")
