"""What the garbage collector need not look at: half a million objects of modules, which stay.

A full collection of them stops every answer for 0.2 s; of what came after the start it takes 0.01.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Within the block nothing is collected: each import would be looked at again by the next ones."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def keep_what_is_there() -> None:
    """What lives now, stays: no later collection looks at it. It blocks."""
    gc.collect()
    gc.freeze()
