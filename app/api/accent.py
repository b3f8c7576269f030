"""Derives the colours of the page from the platform's accent colour."""

from collections.abc import Iterable
from typing import NamedTuple

MIN_CONTRAST = 4.5
"""Minimum contrast of text, by WCAG 2.2 at level AA."""

TINT = 0.12
"""Share of the accent colour in the background of citation numbers and selected items."""

_WHITE, _DARK_SURFACE = (255, 255, 255), (27, 31, 34)

Rgb = tuple[int, int, int]


class AccentColours(NamedTuple):
    """The colour of links and buttons, and a faint background tint of it, both as `#rrggbb`."""

    accent: str
    tint: str


def light_colours(accent: str) -> AccentColours:
    """Return the colours for the light theme. The accent is darkened until it is readable on the tint."""
    return _readable(accent, _WHITE, (0, 0, 0))


def dark_colours(accent: str) -> AccentColours:
    """Return the colours for the dark theme. The accent is lightened until it is readable on the tint."""
    return _readable(accent, _DARK_SURFACE, _WHITE)


def accent_style(accent: str) -> str:
    """Return a style sheet that overrides the default colours of `base.css`, which is loaded first."""
    light, dark = light_colours(accent), dark_colours(accent)
    return (
        f":root {{ --accent: light-dark({light.accent}, {dark.accent}); "
        f"--tint: light-dark({light.tint}, {dark.tint}); }}\n"
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours given as `#rrggbb`, from 1 to 21."""
    lower, higher = sorted((_luminance(_parse(one)), _luminance(_parse(other))))
    return (higher + 0.05) / (lower + 0.05)


def _readable(accent: str, surface: Rgb, extreme: Rgb) -> AccentColours:
    """Return `accent`, mixed with just enough of `extreme` to reach MIN_CONTRAST on its tint, and the tint.

    The tint is `surface` mixed with the resulting accent colour, whose share is TINT.
    """
    candidates = (_mix(_parse(accent), extreme, percent / 100) for percent in range(0, 101, 4))
    pairs = [AccentColours(_hex(c), _hex(_mix(surface, c, TINT))) for c in candidates]
    return next(pair for pair in pairs if contrast(*pair) >= MIN_CONTRAST)


def _mix(colour: Rgb, other: Rgb, share: float) -> Rgb:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def _parse(colour: str) -> Rgb:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _hex(colour: Iterable[int]) -> str:
    return f"#{bytes(colour).hex()}"


def _luminance(colour: Rgb) -> float:
    """Return the relative luminance, as defined by WCAG 2.2."""
    shares = (part / 255 for part in colour)
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
