"""Lines of a PDF -> paragraphs, lists and code as Markdown."""

import re
from collections.abc import Iterator
from itertools import groupby

from ingestion.sources.files.pdf_lines import PdfLine
from ingestion.sources.files.text import as_markdown

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
