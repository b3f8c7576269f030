"""Formats an answer with its citations as footnotes, for the terminal and the clipboard."""

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.style import Style
from rich.text import Text

from app.cli.terminal.answer_output import print_notes, print_steps
from schemas.answer import Answer, Source


def print_with_footnotes(answer: Answer, console: Console) -> None:
    """Print the steps, the footnotes and the notes of `answer`."""
    print_steps(answer, console)
    if answer.sources:
        console.print(Text("────", style="dim"))
    print_footnotes(answer, console)
    print_notes(answer, console)


def print_footnotes(answer: Answer, console: Console) -> None:
    """Print one line per citation, and the URL below the citations of each page."""
    for line in _lines(answer):
        console.print(line, soft_wrap=True)


def _lines(answer: Answer) -> Iterator[Text]:
    for url, sources in groupby(answer.sources, lambda source: source.page_url):
        for source in sources:
            yield Text.assemble(f"[{source.number}] ", (source_heading(source), _link(url)))
        if url:
            yield Text.assemble("    ", (url, Style(color="cyan") + _link(url)))


def source_heading(source: Source) -> str:
    """Title of the page and section."""
    return " > ".join(part for part in (source.title, source.section) if part)


def _link(url: str) -> Style:
    """Style of a hyperlink (OSC 8); terminals without support show the text alone."""
    return Style(link=url) if url else Style()


def as_markdown(answer: Answer) -> str:
    """The answer and its footnotes as Markdown, for pasting."""
    is_numbered = len(answer.answer) > 1
    steps = [f"{n}. {step}" if is_numbered else step for n, step in enumerate(answer.answer, 1)]
    notes = [f"[{s.number}] {source_heading(s)} {s.page_url}".rstrip() for s in answer.sources]
    return "\n\n".join(["\n".join(steps), *(["\n".join(notes)] if notes else [])])
