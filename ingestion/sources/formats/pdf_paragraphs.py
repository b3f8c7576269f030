"""Joins the lines of a PDF into paragraphs, lists, tables and code blocks in Markdown."""

import re
from collections.abc import Iterator
from itertools import groupby

from ingestion.sources.formats.pdf_lines import PdfLine
from ingestion.sources.formats.text import escape_markdown

FULL_LINE_SHARE = 0.7
"""Share of the typical width from which a line was broken by the margin and not by its author."""

_HAN = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BULLET = re.compile(r"\s*[•●▪■◦‣·∙○]\s*")
_LIST_ITEM = re.compile(
    r"\s*(?:[-–*•●▪■◦‣·∙○]\s|\(?\d{1,3}[.)]\s|\d{1,3}、|[（(]\d{1,3}[）)]|\[\d{1,3}\]\s)"
)
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_SENTENCE_ENDS = tuple(".!?:;。！？：；")


def typical_width(lines: list[PdfLine]) -> int:
    """Return the width of full lines in half-width characters: the 90th percentile."""
    widths = sorted(_text_width(line.text) for line in lines)
    return widths[len(widths) * 9 // 10] if widths else 0


def lines_to_markdown(lines: list[PdfLine], width: int) -> str:
    """Return the lines of a section as Markdown; `width` is the typical width of a line."""
    all_code = all(line.monospaced for line in lines) and len(lines) > 50
    blocks: list[str] = []
    for is_code, group in groupby(lines, key=lambda line: line.monospaced and not all_code):
        run = list(group)
        blocks.append(_code_block(run) if is_code else _text_to_markdown(run, width))
    return "\n\n".join(blocks)


def _code_block(lines: list[PdfLine]) -> str:
    """Return a fenced code block, with the indentation restored from the lines' positions."""
    left = min(line.x for line in lines)
    indents = (min(40, round((line.x - left) / (0.6 * line.size or 1))) for line in lines)
    indented = (" " * n + line.text for n, line in zip(indents, lines, strict=True))
    fence = "~~~~" if any("```" in line.text for line in lines) else "```"
    return "\n".join([fence, *indented, fence])


def _text_to_markdown(lines: list[PdfLine], width: int) -> str:
    """Return paragraphs; consecutive rows with the same number of cells become a table."""
    blocks: list[str] = []
    rows = list(_group_rows(lines))
    for cells, group in groupby(rows, key=len):
        run = list(group)
        if cells > 1 and len(run) > 1:
            blocks.append(_table(run))
        else:
            blocks += _paragraphs([line for row in run for line in row], width)
    return "\n\n".join(blocks)


def _group_rows(lines: list[PdfLine]) -> Iterator[list[PdfLine]]:
    """Group lines at the same height, from left to right, into the cells of a row."""
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
    table_rows = [f"| {' | '.join(cells)} |" for cells in texts]
    return "\n".join([table_rows[0], f"|{' --- |' * len(rows[0])}", *table_rows[1:]])


def _paragraphs(lines: list[PdfLine], width: int) -> list[str]:
    return [
        escape_markdown(
            "\n".join(join_lines([line.text.strip() for line in part]) for part in block)
        )
        for block in _split_paragraphs(lines, width)
    ]


def _split_paragraphs(lines: list[PdfLine], width: int) -> Iterator[list[list[PdfLine]]]:
    """Yield paragraphs; each consists of parts that end where the author broke the line."""
    block: list[list[PdfLine]] = []
    for line in lines:
        if not block:
            block = [[line]]
        elif _starts_paragraph(block, line):
            yield block
            block = [[line]]
        elif _LIST_ITEM.match(line.text) or not _is_full_line(block[-1][-1], width):
            block.append([line])
        else:
            block[-1].append(line)
    if block:
        yield block


def _starts_paragraph(block: list[list[PdfLine]], line: PdfLine) -> bool:
    last = block[-1][-1]
    down = last.y - line.y
    if line.page != last.page or down < 0:  # a new page or column
        return last.text.endswith(_SENTENCE_ENDS)
    is_item = bool(_LIST_ITEM.match(block[-1][0].text))
    indented = line.x - last.x > 0.8 * line.size and not is_item and down > 0
    return down > 1.75 * max(last.size, line.size) or (
        indented and last.text.endswith(_SENTENCE_ENDS)
    )


def _is_full_line(line: PdfLine, width: int) -> bool:
    return _text_width(line.text) >= FULL_LINE_SHARE * width or bool(
        _LINE_END_HYPHEN.search(line.text)
    )


def _text_width(text: str) -> int:
    return len(text) + len(_HAN.findall(text))


def join_lines(lines: list[str]) -> str:
    """Join lines into one: hyphenated words are rejoined, Chinese is joined without spaces."""
    text = _BULLET.sub("- ", lines[0], count=1) if _BULLET.match(lines[0]) else lines[0]
    for line in lines[1:]:
        if _LINE_END_HYPHEN.search(text) and line[:1].islower():
            text = text[:-1] + line
        elif _HAN.match(text[-1:]) or _HAN.match(line[:1]):
            text += line
        else:
            text += " " + line
    return text
