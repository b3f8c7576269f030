"""`apidesk graph` draws the pipeline; `apidesk completion` prints shell completion scripts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands.base import load_settings, platform_option, report_errors

if TYPE_CHECKING:
    from schemas.question import AnswerMode

FORMATS = {".png": "png", ".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid"}

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--png", "output_format", flag_value="png", help="Draw a PNG; requires the extra `evaluate`."
)
@click.option(
    "--svg", "output_format", flag_value="svg", help="Draw an SVG with a light and a dark theme."
)
@click.option("--mermaid", "output_format", flag_value="mermaid", help="Print a Mermaid flowchart.")
@click.option(
    "--mode",
    default="pipeline",
    show_default=True,
    type=click.Choice(("pipeline", "tools")),
    help="Answer mode to draw.",
)
@platform_option
@report_errors
def graph(
    file: Path | None, output_format: str | None, mode: "AnswerMode", platform: Path | None
) -> None:
    """Draw the configured pipeline as Mermaid, SVG or PNG.

    The suffix of FILE selects the format. Without FILE, Mermaid is printed on stdout.
    """
    from app.cli.graph.draw import draw, read_pipeline
    from schemas.errors import ConfigurationError

    output_format = output_format or FORMATS.get(file.suffix.lower() if file else ".mmd")
    if output_format is None:
        raise click.UsageError(f"{file}: pass --png, --svg or --mermaid")
    if output_format == "png" and file is None and sys.stdout.isatty():
        raise click.UsageError("cannot print a PNG on a terminal: pass a FILE")
    picture = draw(read_pipeline(load_settings(platform), mode), output_format)
    if file is None:
        sys.stdout.buffer.write(picture)
        return
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    from click.shell_completion import get_completion_class

    program = context.find_root()
    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click supports all SHELLS"
    click.echo(completion_class(program.command, {}, "apidesk", "_APIDESK_COMPLETE").source())
