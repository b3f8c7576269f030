"""Answers and retrieved chunks, printed for a person."""

from rich.console import Console, Group
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.model_check import ModelCheck
from schemas.answer import Answer, Source
from schemas.ingestion import IngestionRun
from schemas.language import Language

WORDS: dict[Language, dict[str, str]] = {
    "zh": {
        "sources": "依据",
        "related": "相关页面",
        "confidence": "可信度",
        "by": "回答者",
        "degraded": "降级",
    },
    "en": {
        "sources": "Sources",
        "related": "Related pages",
        "confidence": "Confidence",
        "by": "by",
        "degraded": "Degraded",
    },
}


def print_answer(answer: Answer) -> None:
    """The answer on stdout: its steps, then what they cite and where to read on."""
    words = WORDS[answer.language]
    console = Console(highlight=False)
    console.print(Text(answer.introduction, style="dim"))
    console.print()
    if len(answer.answer) == 1:
        console.print(Markdown(answer.answer[0]))
    else:
        console.print(_steps(answer.answer))
    if answer.sources:
        console.print()
        console.print(Text(words["sources"], style="bold"))
        for source in answer.sources:
            console.print(Padding(_source_line(source), (0, 0, 0, 2)))
    if answer.related_url:
        console.print()
        console.print(Text(words["related"], style="bold"))
        for url in answer.related_url:
            console.print(Padding(Text(url, style="cyan"), (0, 0, 0, 2)), soft_wrap=True)
    console.print()
    footer = (
        f"{words['confidence']} {answer.confidence} · {answer.type} · {words['by']} "
        f"{answer.answered_by} · {answer.timings.get('total', 0)} ms"
    )
    console.print(Text(footer, style="dim"))
    if answer.degraded:
        console.print(Text(f"{words['degraded']}: {answer.degraded}", style="yellow"))


def print_checks(checks: list[ModelCheck]) -> None:
    """A table of models and what became of their calls, on stdout."""
    console = Console(highlight=False)
    if not checks:
        console.print("no model is configured: questions are answered from the documents alone")
        return
    table = Table("for", "model", "ms", "result", box=None, header_style="bold")
    for check in checks:
        purpose = check.role.prefix.lower().replace("_", " ")
        result = Text(check.problem, style="red") if check.problem else Text("ok", style="green")
        table.add_row(purpose, check.role.model, str(check.milliseconds), result)
    console.print(table)


def print_retrieved(sources: list[Source]) -> None:
    """Score, page and section of each chunk, on stderr."""
    table = Table("#", "score", "page", "section", box=None, header_style="bold")
    for source in sources:
        page = Group(Text(source.title), Text(source.page_url, style="dim"))
        table.add_row(str(source.number), f"{source.score:.3f}", page, source.section)
    Console(stderr=True, highlight=False).print(table)


def print_report(run: IngestionRun, as_json: bool) -> None:
    """What an ingestion did, on stdout: for a person, or as the HTTP API tells it."""
    if as_json:
        print(run.model_dump_json(by_alias=True, indent=2))
    else:
        print_run(run, Console(highlight=False))


def print_run(run: IngestionRun, console: Console) -> None:
    """What an ingestion did, by source, and what it refused."""
    counts = ("documents", "added", "changed", "unchanged", "deleted", "kept")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("source")
    for name in (*counts, "chunks", "written"):
        table.add_column(name, justify="right")
    for source in run.sources:
        numbers = [getattr(source, name) for name in (*counts, "chunks", "written")]
        table.add_row(source.name, *map(str, numbers))
    if run.sources:
        console.print(table)
    for line in run.refused:
        console.print(Text(f"refused  {line}", style="yellow"), soft_wrap=True)
    did = "compared, nothing was written," if run.options.dry_run else "done"
    if run.state in ("succeeded", "partial"):
        console.print(f"{did} in {run.seconds:.1f} s")


def _steps(steps: list[str]) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="bold")
    grid.add_column(overflow="fold")
    for number, step in enumerate(steps, 1):
        grid.add_row(f"{number}.", Markdown(step))
    return grid


def _source_line(source: Source) -> Text:
    where = " > ".join(part for part in (source.title, source.section) if part)
    return Text(f"[{source.number}] {where}")
