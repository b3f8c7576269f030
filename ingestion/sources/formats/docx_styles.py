"""The paragraph styles of a Word document: names, heading levels and the style map for mammoth."""

from xml.etree import ElementTree

MAX_HEADING_STYLES = 200
"""Maximum number of heading styles. Limited because mammoth matches each style against each paragraph."""

CODE_STYLE = "ApideskCode"
"""Id of the style that `docx_structure` gives to paragraphs of code. Documents do not define it."""

OUTLINE_STYLE = "ApideskOutline"
"""Prefix of the ids of styles for paragraphs that have an outline level, but no heading style.

`docx_structure` gives these styles to the paragraphs. The id for level 2 is `ApideskOutline2`.
"""

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
"""Namespace of the elements and attributes, in the notation of ElementTree."""

_HEADING_STYLE_LEVELS = {
    name: level
    for level in range(1, 10)
    for name in (f"heading {level}", f"标题 {level}", f"标题{level}", f"標題 {level}")
} | {"title": 1, "标题": 1, "標題": 1}
"""Maps the names of heading styles, in English and in simplified or traditional Chinese, to levels.

The ids of styles are not used, because they differ between the language versions of Word.
"""


def value(element: ElementTree.Element | None, path: str) -> str:
    """Return the attribute `val` of the element at `path`; empty if there is no such element.

    The steps of `path` are names without a namespace: `pPr/pStyle`.
    """
    steps = "/".join(WORD + step for step in path.split("/"))
    child = element.find(steps) if element is not None else None
    return "" if child is None else child.get(f"{WORD}val", "")


class WordStyles:
    """The paragraph styles in `part`, the content of `word/styles.xml`, which may be empty."""

    def __init__(self, part: bytes) -> None:
        root = ElementTree.fromstring(part) if part else ElementTree.Element("styles")
        self._styles = {
            style.get(f"{WORD}styleId", ""): style
            for style in root.iter(f"{WORD}style")
            if style.get(f"{WORD}type") == "paragraph"
        }

    def name(self, style_id: str) -> str:
        """Return the name of a style in lower case; empty for an unknown style."""
        return value(self._styles.get(style_id), "name").lower()

    def chain(self, style_id: str) -> list[tuple[str, ElementTree.Element]]:
        """Return the ids and elements of a style and of the styles on which it is based, in this order."""
        found: list[tuple[str, ElementTree.Element]] = []
        # Limited because styles may be based on each other in a cycle.
        while style_id in self._styles and len(found) < 10:
            found.append((style_id, self._styles[style_id]))
            style_id = value(found[-1][1], "basedOn")
        return found

    def heading_level(self, style_id: str) -> int:
        """Return the heading level of a style, 1 to 9; 0 for other styles.

        The level comes from the name of the style or, if the name is unknown, from its outline level. A
        style with neither has the level of the style on which it is based.
        """
        for _, style in self.chain(style_id):
            outline = value(style, "pPr/outlineLvl")
            level = _HEADING_STYLE_LEVELS.get(value(style, "name").lower(), 0)
            if level or outline:
                return level or (int(outline) + 1 if outline in tuple("012345678") else 0)
        return 0

    def style_map(self) -> str:
        """Return a style map for mammoth.

        It turns paragraphs with a heading style into `h1` to `h6`, and code into `pre`.
        """
        lines = [f"p.{CODE_STYLE} => pre:fresh"]
        lines += [f"p.{OUTLINE_STYLE}{level} => h{level}:fresh" for level in range(1, 7)]
        headings: list[str] = []
        for style_id, style in self._styles.items():
            level, name = self.heading_level(style_id), value(style, "name")
            if level and name and not set(name) & set("'\\\n\r"):
                headings.append(f"p[style-name='{name}'] => h{min(level, 6)}:fresh")
        return "\n".join(lines + headings[:MAX_HEADING_STYLES])
