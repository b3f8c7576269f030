"""The lines of a PDF's pages, with where they stand and how large they are set.
Lines of a PDF -> paragraphs, lists and code as Markdown.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ingestion.sources.formats.text import as_markdown

MOST_EDGE = 3
"""Lines at a page's top and bottom that may be running heads."""

_MONOSPACED = re.compile(r"mono|courier|consol|menlo|cmtt|typewriter|fixed", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|cmbx|-demi|medi\b", re.IGNORECASE)
_AT_AN_END = re.compile(r"^\W{0,3}(\d{1,4})(?!\S)|(?<!\S)(\d{1,4})\W{0,3}$")
_LEADER = re.compile(r"(?:(?:\.|·)\s?){4,}\s*(?:\d{1,4}|[ivxlc]{1,6})\s*$|…{2,}\s*\d{1,4}\s*$")
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")


@dataclass(frozen=True)
class PdfLine:
    """One line of text."""

    text: str
    page: int
    """From 1."""
    x: float
    y: float
    size: float
    """Of most of its characters, on paper, in points; to half a point."""
    monospaced: bool = False
    bold: bool = False


@dataclass
class _Run:
    text: str
    x: float
    y: float
    size: float
    font: str


class PageLines:
    """Collects the runs of text of a page into lines."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.lines: list[PdfLine] = []
        self.runs: list[_Run] = []

    def add(self, text: str, cm: list[float], tm: list[float], font: str, size: float) -> None:
        """A run, with the matrices it is shown through."""
        x, y, scale = _place(cm, tm)
        for i, piece in enumerate(text.split("\n")):
            if i:
                self._end()
            if piece.strip() or (piece and self.runs):
                self.runs.append(_Run(piece, x, y, size * scale, font))

    def finish(self) -> list[PdfLine]:
        """The page's lines, in the order in which they are shown."""
        self._end()
        return self.lines

    def _end(self) -> None:
        text = "".join(run.text for run in self.runs)
        if text.strip():
            sizes: Counter[float] = Counter()
            fonts: Counter[str] = Counter()
            for run in self.runs:
                sizes[_half(run.size)] += len(run.text.strip())
                fonts[run.font] += len(run.text.strip())
            font = fonts.most_common(1)[0][0]
            first = self.runs[0]
            mono = all(_MONOSPACED.search(name) for name, count in fonts.items() if count)
            line = PdfLine(_clean(text), self.page, first.x, first.y, sizes.most_common(1)[0][0],
                        mono, bool(_BOLD.search(font)))  # fmt: skip
            self.lines.append(line)
        self.runs = []


def _place(cm: list[float], tm: list[float]) -> tuple[float, float, float]:
    """Where a run stands on the page, and how much its font is scaled."""
    x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
    y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
    scale = math.hypot(tm[2] * cm[0] + tm[3] * cm[2], tm[2] * cm[1] + tm[3] * cm[3])
    finite = all(map(math.isfinite, (x, y, scale)))
    return (x, y, scale) if finite else (0.0, 0.0, 1.0)


def _half(size: float) -> float:
    return round(min(abs(size), 1e6) * 2) / 2 if math.isfinite(size) else 0.0


def _clean(text: str) -> str:
    """Ligatures as letters, and nothing that cannot be seen; what stands for spaces is one."""
    for ligature, letters in (("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬀ", "ff"), ("ﬃ", "ffi"), ("ﬄ", "ffl")):
        text = text.replace(ligature, letters)
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "", text)
    return re.sub(r"[\t\xa0]", " ", text).rstrip()


def without_furniture(pages: list[list[PdfLine]]) -> list[PdfLine]:
    """The lines of `pages` without running heads, page numbers and tables of contents.

    Running heads stand at the same edge of many pages, whatever number is in them, or carry the
    page's number, whatever else they say.
    """
    edges = [_edges(lines) for lines in pages]
    repeated = Counter(text for page in edges for text in {edge.text for edge in page.values()})
    offsets = Counter(
        offset for page in edges for offset in {o for e in page.values() for o in e.offsets}
    )
    most = max(3, sum(1 for lines in pages if lines) // 3)

    def is_furniture(edge: "_Edge | None") -> bool:
        return edge is not None and (
            repeated[edge.text] >= most or any(offsets[o] >= most for o in edge.offsets)
        )

    return [
        line
        for page, lines in zip(edges, pages, strict=True)
        for i, line in enumerate(lines)
        if not is_furniture(page.get(i)) and not _LEADER.search(line.text)
    ]


@dataclass(frozen=True)
class _Edge:
    """A line near the top or bottom of its page."""

    text: str
    """Where it stands and what it says, without numbers."""
    offsets: tuple[int, ...] = ()
    """If it begins or ends with a number: how far that is from the page's own."""


def _edges(lines: list[PdfLine]) -> dict[int, _Edge]:
    """The lines near the top or bottom, by index."""
    by_height = sorted(range(len(lines)), key=lambda i: -lines[i].y)
    rows = [list(row) for _, row in groupby(by_height, key=lambda i: round(lines[i].y))]
    near = rows if len(rows) <= 2 * MOST_EDGE else rows[:MOST_EDGE] + rows[-MOST_EDGE:]
    outermost = {*rows[0], *rows[-1]} if rows else set()
    return {i: _edge(lines[i], i in outermost) for row in near for i in row}


def _edge(line: PdfLine, is_outermost: bool) -> _Edge:
    text = line.text.strip().lower()
    ends = {m[1] or m[2] for m in _AT_AN_END.finditer(text)} if is_outermost else set()
    place = f"{round(line.y)} {_NUMBER.sub('#', text)}"
    return _Edge(place, tuple(int(end) - line.page for end in ends))


FULL = 0.7
"""A line at least so wide, of the usual width, was broken by the margin and not by its author."""

_HAN = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BULLET = re.compile(r"\s*[•●▪■◦‣·∙○]\s*")
_ITEM = re.compile(
    r"\s*(?:[-–*•●▪■◦‣·∙○]\s|\(?\d{1,3}[.)]\s|\d{1,3}、|[（(]\d{1,3}[）)]|\[\d{1,3}\]\s)"
)
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_ENDS = tuple(".!?:;。！？：；")


def usual_width(lines: list[PdfLine]) -> int:
    """How wide the lines are that go all the way: the width that one in ten exceeds."""
    widths = sorted(_width(line.text) for line in lines)
    return widths[len(widths) * 9 // 10] if widths else 0


def paragraphs(lines: list[PdfLine], width: int) -> str:
    """`lines`, all of one section, as Markdown; `width` is the usual one."""
    all_code = all(line.monospaced for line in lines) and len(lines) > 50
    blocks: list[str] = []
    for is_code, group in groupby(lines, key=lambda line: line.monospaced and not all_code):
        run = list(group)
        blocks.append(_code(run) if is_code else _text(run, width))
    return "\n\n".join(blocks)


def _code(lines: list[PdfLine]) -> str:
    """A fence; what the page shows by its place alone is indented again."""
    left = min(line.x for line in lines)
    indents = (min(40, round((line.x - left) / (0.6 * line.size or 1))) for line in lines)
    shown = (" " * n + line.text for n, line in zip(indents, lines, strict=True))
    fence = "~~~~" if any("```" in line.text for line in lines) else "```"
    return "\n".join([fence, *shown, fence])


def _text(lines: list[PdfLine], width: int) -> str:
    """Paragraphs, and tables where rows of as many cells follow each other."""
    written: list[str] = []
    rows = list(_rows(lines))
    for cells, group in groupby(rows, key=len):
        run = list(group)
        if cells > 1 and len(run) > 1:
            written.append(_table(run))
        else:
            written += _paragraphs([line for row in run for line in row], width)
    return "\n\n".join(written)


def _rows(lines: list[PdfLine]) -> Iterator[list[PdfLine]]:
    """Lines that stand side by side, from left to right, are the cells of a row."""
    row: list[PdfLine] = []
    for line in lines:
        last = row[-1] if row else None
        if last and not (
            last.page == line.page and abs(last.y - line.y) < 0.2 * line.size and last.x < line.x
        ):
            yield row
            row = []
        row.append(line)
    if row:
        yield row


def _table(rows: list[list[PdfLine]]) -> str:
    texts = [[line.text.strip().replace("|", "\\|") for line in row] for row in rows]
    written = [f"| {' | '.join(cells)} |" for cells in texts]
    return "\n".join([written[0], f"|{' --- |' * len(rows[0])}", *written[1:]])


def _paragraphs(lines: list[PdfLine], width: int) -> list[str]:
    return [
        as_markdown("\n".join(joined([line.text.strip() for line in part]) for part in block))
        for block in _blocks(lines, width)
    ]


def _blocks(lines: list[PdfLine], width: int) -> Iterator[list[list[PdfLine]]]:
    """Paragraphs, each of parts that end where their author ended the line (rows, items)."""
    block: list[list[PdfLine]] = []
    for line in lines:
        if not block:
            block = [[line]]
        elif _begins_paragraph(block, line):
            yield block
            block = [[line]]
        elif _ITEM.match(line.text) or not _runs_on(block[-1][-1], width):
            block.append([line])
        else:
            block[-1].append(line)
    if block:
        yield block


def _begins_paragraph(block: list[list[PdfLine]], line: PdfLine) -> bool:
    last = block[-1][-1]
    down = last.y - line.y
    if line.page != last.page or down < 0:  # the next page or column
        return last.text.endswith(_ENDS)
    is_item = bool(_ITEM.match(block[-1][0].text))
    indented = line.x - last.x > 0.8 * line.size and not is_item and down > 0
    return down > 1.75 * max(last.size, line.size) or (indented and last.text.endswith(_ENDS))


def _runs_on(line: PdfLine, width: int) -> bool:
    return _width(line.text) >= FULL * width or bool(_HYPHEN.search(line.text))


def _width(text: str) -> int:
    return len(text) + len(_HAN.findall(text))


def joined(lines: list[str]) -> str:
    """Lines as one: a word that was divided is whole, and Chinese has no spaces."""
    text = _BULLET.sub("- ", lines[0], count=1) if _BULLET.match(lines[0]) else lines[0]
    for line in lines[1:]:
        if _HYPHEN.search(text) and line[:1].islower():
            text = text[:-1] + line
        elif _HAN.match(text[-1:]) or _HAN.match(line[:1]):
            text += line
        else:
            text += " " + line
    return text
