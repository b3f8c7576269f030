"""Commands that work on a platform.toml: `init`, `check`, `ingest` and `graph`.

`graph` draws the configured pipeline without connecting to the store.
"""

import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from app.cli.commands.base import (
    EXIT_FAILED,
    load_settings,
    platform_option,
    print_error,
    report_errors,
    run_until_signal,
)
from schemas.choices import LANGUAGES, Language
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from app.cli.setup.checks import Trial
    from runnables.pipeline import PipelineSteps
    from schemas.question import AnswerMode
    from schemas.settings import Settings

REBUILD_NOTE = (
    "if the embedding model, APIDESK_EMBEDDING_CHARS or APIDESK_CHUNK_TOKENS has changed, running servers "
    "refuse questions after the rebuild until they are restarted with the new settings"
)

MERMAID_SUFFIXES = (".mmd", ".mermaid", ".md")


@click.command()
@click.argument("file", default="platform.toml", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--openapi",
    metavar="FILE_OR_URL",
    help="Fill in platform.toml from this OpenAPI description without asking questions.",
)
@click.option("--documents", metavar="WHERE", help="Folder, or an OpenAPI file or URL.")
@click.option("--name", help="Name of the platform.")
@click.option("--about", help="Description of the platform and of the questions that it covers.")
@click.option("--language", type=click.Choice(LANGUAGES), help="Language of the platform.")
@click.option("--page-url", metavar="TEMPLATE", help="URL template of a page; '' for none.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@report_errors
def init(
    file: Path,
    openapi: str | None,
    documents: str | None,
    name: str | None,
    about: str | None,
    language: Language | None,
    page_url: str | None,
    force: bool,
) -> None:
    """Create a platform.toml and try it.

    Without --openapi, asks for the values that are not given as options. Then indexes the documents, as
    `apidesk ingest` does, and answers a question about them.
    """
    from app.cli.setup.checks import run_trial
    from app.cli.setup.platform_file import (
        InterviewAnswers,
        check_overwrite,
        draft_from_openapi,
        interview,
        restore_on_error,
        write_platform_file,
    )
    from app.telemetry.progress import ingestion_progress
    from schemas.platform import SourceLimits

    if openapi is not None and documents is not None:
        raise click.UsageError("--openapi and --documents cannot be combined")
    check_overwrite(file, force)
    settings = load_settings(file)
    answers = InterviewAnswers(openapi or documents, name, about, language, page_url)
    build_draft = interview if openapi is None else draft_from_openapi
    draft = build_draft(answers, SourceLimits.from_settings(settings))
    with restore_on_error(file), ingestion_progress(summary=False) as progress:
        write_platform_file(draft, file)
        click.echo(f"written: {file}")
        trial = asyncio.run(run_trial(settings, progress))
    _print_trial(trial, file)


def _print_trial(trial: "Trial", file: Path) -> None:
    from app.cli.terminal.answer_output import print_answer
    from app.cli.terminal.ingest import print_ingestion_run

    print_ingestion_run(trial.run, as_json=False)
    if trial.question and trial.answer:
        click.echo(f"\n› {trial.question}\n")
        print_answer(trial.answer)
    is_default = load_settings(None).platform.resolve() == file.resolve()
    export = "" if is_default else f"  export APIDESK_PLATFORM={shlex.quote(str(file))}\n"
    click.echo(f"\nnext:\n{export}  apidesk chat\n  apidesk serve")


@click.command()
@platform_option
@report_errors
def check(platform: Path | None) -> None:
    """Test the chat, judge and embedding models with short calls.

    Also warns about names in the environment or in .env that start with APIDESK_ but are not settings.
    """
    from app.cli.setup.checks import check_models, print_checks
    from schemas.settings import unknown_settings

    for warning in unknown_settings():
        print_error(warning)
    checks = asyncio.run(check_models(load_settings(platform)))
    print_checks(checks)
    if any(check.problem for check in checks):
        sys.exit(EXIT_FAILED)


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be added, changed and deleted.")
@click.option("--allow-deletes", is_flag=True, help="Allow deleting a large part of a source.")
@click.option("--rebuild", is_flag=True, help="Build a new collection, then switch to it.")
@click.option("--watch", is_flag=True, help="Keep running and index changes as they happen.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, as GET /ingestions/{id} returns it."
)
@click.option(
    "--explain",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="With --dry-run: show only how this page is read, and why, without comparing it with the index. "
    "The path may be relative to the folder of a source.",
)
@platform_option
@report_errors
def ingest(
    dry_run: bool,
    allow_deletes: bool,
    rebuild: bool,
    watch: bool,
    as_json: bool,
    explain: Path | None,
    platform: Path | None,
) -> None:
    """Update the index: add new documents, replace changed ones and remove deleted ones."""
    if explain is not None:
        if not dry_run:
            raise click.UsageError("--explain needs --dry-run")
        if watch or rebuild or as_json:
            raise click.UsageError("--explain cannot be combined with --json, --rebuild or --watch")
        from app.cli.terminal.ingest import explain_lines

        click.echo("\n".join(explain_lines(load_settings(platform), explain)))
        return
    from app.cli.terminal.ingest import print_ingestion_run, run_ingestion, run_ingestion_and_watch
    from schemas.ingestion import IngestionOptions

    options = IngestionOptions(dry_run=dry_run, allow_deletes=allow_deletes, rebuild=rebuild)
    settings = load_settings(platform)
    if rebuild and not dry_run:
        print_error(REBUILD_NOTE)
    if watch:
        with suppress(KeyboardInterrupt):
            run_until_signal(
                run_ingestion_and_watch(
                    settings, options, lambda run: print_ingestion_run(run, as_json), print_error
                )
            )
        return
    run = run_until_signal(run_ingestion(settings, options))
    print_ingestion_run(run, as_json)
    if run.state != "succeeded":
        sys.exit(EXIT_FAILED)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--mode",
    default="pipeline",
    show_default=True,
    type=click.Choice(("pipeline", "tools")),
    help="Answer mode to draw.",
)
@platform_option
@report_errors
def graph(file: Path | None, mode: "AnswerMode", platform: Path | None) -> None:
    """Draw the configured pipeline as a Mermaid flowchart, into FILE or on stdout.

    In a Markdown file, the flowchart is in a code block.
    """
    if file is not None and file.suffix.lower() not in MERMAID_SUFFIXES:
        raise click.UsageError(
            f"{file}: the name must end in {', '.join(MERMAID_SUFFIXES[:-1])} or {MERMAID_SUFFIXES[-1]}, "
            "because the output is Mermaid text; use mermaid-cli to turn it into a picture"
        )
    flowchart = draw_mermaid(build_steps(load_settings(platform), mode))
    if file is None:
        click.echo(flowchart, nl=False)
        return
    if file.suffix.lower() == ".md":
        flowchart = f"```mermaid\n{flowchart}```\n"
    try:
        file.write_text(flowchart, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None


# --- flowchart of the pipeline --------------------------------------------------------------------
# LangChain's `get_graph()` would show the pipeline as a single box, because a function calls the steps.


def build_steps(settings: "Settings", mode: "AnswerMode") -> "PipelineSteps":
    """Return the steps that `settings` configure. They cannot run, because the collection has no client.

    Raises ConfigurationError for invalid settings, or for mode `tools` without a chat model.
    """
    from ingestion.embeddings import open_embeddings
    from ingestion.platform_config import read_platform
    from ingestion.store.manifest import expected_manifest
    from ingestion.store.milvus_collection import MilvusCollection
    from runnables.factory import PipelineFactory
    from runnables.models.chat_model import ConcurrencyLimiter
    from runnables.models.chat_models import open_chat_models

    limiter = ConcurrencyLimiter(settings.max_concurrency)
    models = open_chat_models(settings, limiter)
    if mode == "tools" and models is None:
        raise ConfigurationError(
            "mode tools needs a chat model, but APIDESK_CHAT_MODEL does not name one"
        )
    no_client = cast(Any, None)
    manifest = expected_manifest(settings, "whitespace")  # any tokenizer: nothing is indexed
    factory = PipelineFactory(
        settings,
        read_platform(settings.platform),
        MilvusCollection(no_client, settings.collection, manifest, in_place=True),
        open_embeddings(settings),
        models,
        limiter,
    )
    return factory.steps(mode)


def draw_mermaid(steps: "PipelineSteps") -> str:
    """Return a Mermaid flowchart of the pipeline with `steps`.

    `tests/test_graph.py` compares the flowchart with the steps that run when questions are asked.
    """
    from langchain_core.runnables.graph import Graph, Node

    graph = Graph()

    def add(name: str, *previous: Node, condition: str | None = None) -> Node:
        """Add a step after `previous` steps. `condition` is the label of the edges to a conditional step.

        The part of `name` before a colon is the title of the box around the step.
        """
        node = graph.add_node(None, name)
        for step in previous:
            graph.add_edge(step, node, condition, conditional=condition is not None)
        return node

    question = add("Question")
    condense = add(steps.condense.get_name(), question)
    is_small_talk = add("route-small-talk:is_small_talk", condense)
    acknowledge = add("route-small-talk:acknowledge", is_small_talk, condition="yes")
    concurrent = [
        add(f"classify-and-retrieve:{step.get_name()}", is_small_talk, condition="no")
        for step in (steps.classify, steps.retrieve)
    ]
    is_off_topic = add("route-off-topic:is_off_topic", *concurrent)
    refuse = add("route-off-topic:refuse", is_off_topic, condition="yes")
    last = add("route-off-topic:expand-query", is_off_topic, condition="no")
    for name in _on_topic_steps(steps):
        last = add(f"route-off-topic:{name}", last)
    # A question that is probably off-topic skips to the last step; the reply names the nearest pages.
    graph.add_edge(is_off_topic, last, "probably", conditional=True)
    add("Answer", acknowledge, refuse, last)
    return graph.draw_mermaid()


def _on_topic_steps(steps: "PipelineSteps") -> Iterator[str]:
    """Yield the names of the steps after `expand-query`, in order."""
    yield steps.boost_named_api.get_name()
    if steps.research is not None:
        yield steps.research.get_name()
    if steps.write is None:
        yield steps.quote.get_name()
    else:
        if steps.search_web is not None:
            yield "web"
        yield "add-evidence"
        yield steps.write.get_name()
    yield steps.ground.get_name()
