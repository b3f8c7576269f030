"""Collects the text of PDF pages into lines, and removes headers, footers and page numbers."""

import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

MARGIN_ROWS = 3
"""Number of rows at the top of a page, and at the bottom, that may be headers or footers.

A row consists of the lines at one height.
"""

_MONOSPACED = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter|fixed", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|cmbx|-demi|medi\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"^\W{0,3}(\d{1,4})(?!\S)|(?<!\S)(\d{1,4})\W{0,3}$")
_TOC_LEADER = re.compile(r"(?:(?:\.|·)\s{0,3}){4,}(?:\d{1,4}|[ivxlc]{1,6})\s*$|…{2,}\s*\d{1,4}\s*$")
_TOC_LINE_CHARS = 400
"""Number of characters at the end of a line that are searched for dots and a page number."""
_TOC_TITLE = re.compile(r"\s*(?:目\s*[录錄次]|(?:table of )?contents)\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")

_SUPPLEMENT_RADICALS = (
    "⺁⺂⺃⺄⺅⺆⺇⺈⺉⺊⺋⺌⺍⺎⺏⺐⺑⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺥⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺳⺴⺵⺶⺷⺸⺹⺺"
    "⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲"
)
_UNIFIED_IDEOGRAPHS = (
    "厂乛乚乙亻冂𠘨刀刂卜㔾小小兀尣尢𡯂巳幺彑彐忄心扌攵旡日月歺民氵氺灬爫爫丬牛犭王𤴔目示礻𥫗糹纟罓罒㓁冗𦉫羊𦍌𦍋耂肀"
    "聿肉𦥑艹艹艹虎衤覀西见角𧢲讠贝𧾷车辶辶辶邑钅長镸长门𨸏阝雨青韦页风飞食𩙿飠饣𩠐马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀"
)
_IDEOGRAPHS: dict[int, str | int] = {
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in range(0x2E80, 0x2FD6)},
    **str.maketrans(_SUPPLEMENT_RADICALS, _UNIFIED_IDEOGRAPHS),
    0x2F3E: "户",  # Chrome writes it for 户 and 戶; the text is assumed to be simplified Chinese
}
"""Maps radicals to the ideographs that look the same (Unicode's property Equivalent_Unified_Ideograph).

Programs such as Chrome write the radicals into PDFs.
"""


@dataclass(frozen=True)
class PdfLine:
    """A line of text, with its position in points from the lower left corner of its page."""

    text: str
    page: int
    """Page number from 1."""
    x: float
    y: float
    size: float
    """Most frequent font size of the characters in points, rounded to half a point."""
    is_monospaced: bool = False
    is_bold: bool = False


@dataclass
class _TextRun:
    """Text that one PDF operator shows."""

    text: str
    x: float
    y: float
    size: float
    font: str


class LineCollector:
    """Collects the text runs of a page into lines."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.lines: list[PdfLine] = []
        self.runs: list[_TextRun] = []

    def add(self, text: str, cm: list[float], tm: list[float], font: str, size: float) -> None:
        """Add a text run.

        `cm` and `tm` are the transformation matrix and the text matrix (six numbers each). `size` is the
        font size in points before the matrices scale it.
        """
        x, y, scale = _position(cm, tm)
        for i, piece in enumerate(text.split("\n")):
            if i:
                self._end_line()
            if piece.strip() or (piece and self.runs):
                self.runs.append(_TextRun(piece, x, y, size * scale, font))

    def finish(self) -> list[PdfLine]:
        """Return the lines of the page in the order in which they are drawn."""
        self._end_line()
        return self.lines

    def _end_line(self) -> None:
        text = "".join(run.text for run in self.runs)
        if text.strip():
            sizes: Counter[float] = Counter()
            fonts: Counter[str] = Counter()
            for run in self.runs:
                sizes[_half_point(run.size)] += len(run.text.strip())
                fonts[run.font] += len(run.text.strip())
            font = fonts.most_common(1)[0][0]
            first = self.runs[0]
            mono = all(_MONOSPACED.search(name) for name, count in fonts.items() if count)
            line = PdfLine(_clean(text), self.page, first.x, first.y, sizes.most_common(1)[0][0],
                        mono, bool(_BOLD.search(font)))  # fmt: skip
            self.lines.append(line)
        self.runs = []


def _position(cm: list[float], tm: list[float]) -> tuple[float, float, float]:
    """Return the position of a run on the page and the scale of its font."""
    x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
    y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
    scale = math.hypot(tm[2] * cm[0] + tm[3] * cm[2], tm[2] * cm[1] + tm[3] * cm[3])
    finite = all(map(math.isfinite, (x, y, scale)))
    return (x, y, scale) if finite else (0.0, 0.0, 1.0)


def _half_point(size: float) -> float:
    return round(min(abs(size), 1e6) * 2) / 2 if math.isfinite(size) else 0.0


def _clean(text: str) -> str:
    """Expand ligatures, replace radicals, tabs and no-break spaces, and drop control characters."""
    for ligature, letters in (("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬀ", "ff"), ("ﬃ", "ffi"), ("ﬄ", "ffl")):
        text = text.replace(ligature, letters)
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "", text)
    return re.sub(r"[\t\xa0]", " ", text.translate(_IDEOGRAPHS)).rstrip()


@dataclass(frozen=True)
class _MarginLine:
    """A line near the top or the bottom of its page."""

    key: str
    """Height on the page, and text with its numbers replaced by `#`."""
    offsets: tuple[int, ...] = ()
    """The numbers at the ends of the line, each minus the `page` of the line.

    A printed page number has the same offset on all pages. Only lines in the first or last row of a page
    have offsets.
    """


def remove_page_furniture(pages: list[list[PdfLine]]) -> list[PdfLine]:
    """Return the lines of `pages` without headers, footers, page numbers and tables of contents.

    A header or footer is at the same height on many pages and, apart from numbers, has the same text. A
    line in the first or last row of a page is also removed if it begins or ends with a page number. A page
    number grows by one from page to page, on many pages.
    """
    margins = [_margin_lines(lines) for lines in pages]
    repeated = Counter(key for page in margins for key in {line.key for line in page.values()})
    offsets = Counter(
        offset
        for page in margins
        for offset in {offset for line in page.values() for offset in line.offsets}
    )
    threshold = max(3, sum(1 for lines in pages if lines) // 3)

    def is_furniture(line: _MarginLine | None) -> bool:
        return line is not None and (
            repeated[line.key] >= threshold
            or any(offsets[offset] >= threshold for offset in line.offsets)
        )

    return [
        line
        for page, lines in zip(margins, pages, strict=True)
        for i, line in _without_table_of_contents(lines)
        if not is_furniture(page.get(i))
    ]


def _without_table_of_contents(lines: list[PdfLine]) -> list[tuple[int, PdfLine]]:
    """Return the lines of a page with their indexes, without those of a table of contents.

    An entry of a table of contents ends in dots and a page number. The dots and the number may be a PdfLine
    of their own, at the height of the entry. On a page with entries, the title "Contents" is also removed.
    """
    heights = {round(line.y) for line in lines if _TOC_LEADER.search(line.text[-_TOC_LINE_CHARS:])}
    return [
        (i, line)
        for i, line in enumerate(lines)
        if round(line.y) not in heights and not (heights and _TOC_TITLE.fullmatch(line.text))
    ]


def _margin_lines(lines: list[PdfLine]) -> dict[int, _MarginLine]:
    """Return the lines near the top and the bottom of a page, by their index in `lines`."""
    by_height = sorted(range(len(lines)), key=lambda i: -lines[i].y)
    rows = [list(row) for _, row in groupby(by_height, key=lambda i: round(lines[i].y))]
    near = rows[:MARGIN_ROWS] + rows[-MARGIN_ROWS:]
    outermost = {*rows[0], *rows[-1]} if rows else set()
    return {i: _margin_line(lines[i], i in outermost) for row in near for i in row}


def _margin_line(line: PdfLine, is_outermost: bool) -> _MarginLine:
    text = line.text.strip().lower()
    matches = _PAGE_NUMBER.finditer(text) if is_outermost else ()
    numbers = {match[1] or match[2] for match in matches}
    key = f"{round(line.y)} {_NUMBER.sub('#', text)}"
    return _MarginLine(key, tuple(int(number) - line.page for number in numbers))
