"""Computes the automatic numbers of the headings of a Word document, such as 2.3.

An abstract list defines the start and the format of the numbers on each of its levels. Paragraphs refer to
lists, and several lists may use one abstract list. A list continues the numbers of the lists with the same
abstract list, unless it has a start of its own for a level.
"""

import re
from xml.etree import ElementTree

from ingestion.sources.formats.docx_styles import WORD, WordStyles, value

_DIGITS = "零一二三四五六七八九"
_CHINESE = frozenset(
    ["chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCountingThousand"]
)


class HeadingNumbers:
    """Counts the numbered paragraphs of a document; `part` is the content of `word/numbering.xml`."""

    def __init__(self, styles: WordStyles, part: bytes) -> None:
        root = ElementTree.fromstring(part) if part else ElementTree.Element("numbering")
        self._styles = styles
        self._lists = {
            num.get(f"{WORD}numId", ""): value(num, "abstractNumId")
            for num in root.iter(f"{WORD}num")
        }
        """Maps the id of each list to the id of its abstract list."""
        self._starts = {
            (num.get(f"{WORD}numId", ""), override.get(f"{WORD}ilvl", "")): start
            for num in root.iter(f"{WORD}num")
            for override in num.iter(f"{WORD}lvlOverride")
            if (start := value(override, "startOverride"))
        }
        """Maps the id of a list and a level to the list's own start."""
        self._restarts = set(self._starts)
        """The keys of `_starts` for which no paragraph has been counted yet.

        The first paragraph that is counted for a key restarts the numbers.
        """
        self._levels = {
            (abstract.get(f"{WORD}abstractNumId", ""), level.get(f"{WORD}ilvl", "")): level
            for abstract in root.iter(f"{WORD}abstractNum")
            for level in abstract.iter(f"{WORD}lvl")
        }
        """Maps the id of an abstract list and a level, from "0", to the element that defines the level."""
        self._linked = {
            (key[0], value(level, "pStyle")): key[1] for key, level in self._levels.items()
        }
        """Maps the ids of an abstract list and of a paragraph style to the level that has this style."""
        self._counts: dict[str, list[int]] = {}
        """The current count on each level of an abstract list: [2, 3] after the heading 2.3."""

    def next_number(self, paragraph: ElementTree.Element) -> str:
        """Count `paragraph`, and return its number.

        The result is empty if the paragraph has no number, or one in a format that is not supported.
        """
        list_id, index = self._list_level(paragraph)
        abstract_id = self._lists.get(list_id, "")
        if (abstract_id, str(index)) not in self._levels:
            return ""
        starts = [self._start(list_id, level) for level in range(index + 1)]
        is_restarted = (list_id, str(index)) in self._restarts
        self._restarts.discard((list_id, str(index)))
        counts = self._counts.get(abstract_id, [])[: index if is_restarted else index + 1]
        is_new = len(counts) <= index
        counts += starts[len(counts) :]
        if not is_new:
            counts[index] += 1
        self._counts[abstract_id] = counts
        text = value(self._levels[abstract_id, str(index)], "lvlText")
        if value(self._levels[abstract_id, str(index)], "numFmt") in ("bullet", "none"):
            return ""
        numbers = [
            self._formatted(abstract_id, index, level, count) for level, count in enumerate(counts)
        ]
        # `text` is a template such as `%1.%2`, in which `%1` stands for the number on level 0.
        used = [int(digit) - 1 for digit in re.findall("%([1-9])", text)]
        if any(level > index or not numbers[level] for level in used):
            return ""
        return re.sub("%([1-9])", lambda match: numbers[int(match[1]) - 1], text).strip()

    def _list_level(self, paragraph: ElementTree.Element) -> tuple[str, int]:
        """Return the id of the paragraph's list, and the paragraph's level in it, from 0."""
        style_id = value(paragraph, "pPr/pStyle")
        sources = [("", paragraph), *self._styles.chain(style_id)]
        for source_id, source in sources:
            if list_id := value(source, "pPr/numPr/numId"):
                abstract_id = self._lists.get(list_id, "")
                levels = (value(element, "pPr/numPr/ilvl") for _, element in sources)
                index = self._linked.get((abstract_id, source_id or style_id)) or next(
                    filter(None, levels), "0"
                )
                return list_id, int(index) if index in tuple("012345678") else 0
        return "", 0

    def _start(self, list_id: str, index: int) -> int:
        level = self._levels.get((self._lists[list_id], str(index)))
        start = self._starts.get((list_id, str(index))) or value(level, "start")
        return int(start) if start.isdecimal() and len(start) < 4 else 1

    def _formatted(self, abstract_id: str, paragraph_level: int, level: int, count: int) -> str:
        """Return `count` in the number format of `level`; empty for an unsupported format.

        `count` is a component of the number of a paragraph on `paragraph_level`. If that level has the
        element `isLgl`, all components are decimal.
        """
        definition = self._levels[abstract_id, str(paragraph_level)]
        number_format = value(self._levels.get((abstract_id, str(level))), "numFmt")
        if number_format in ("", "decimal") or definition.find(f"{WORD}isLgl") is not None:
            return str(count)
        if number_format in ("upperLetter", "lowerLetter") and 1 <= count <= 26:
            return chr(ord("A" if number_format == "upperLetter" else "a") + count - 1)
        if number_format in _CHINESE and 1 <= count <= 99:
            tens, ones = divmod(count, 10)
            ten = ("" if tens == 1 else _DIGITS[tens]) + "十" if tens else ""
            return ten + (_DIGITS[ones] if ones else "")
        return ""
