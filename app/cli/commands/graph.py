"""`apidesk graph`: a picture of the pipeline.
`apidesk completion`: the shell's own completion.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands.base import one_line_errors, platform_option, settings_with

if TYPE_CHECKING:
    from schemas.question import AnswerMode

FORMS = {".png": "png", ".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid"}


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--png", "form", flag_value="png", help="A picture; needs the extra evaluate.")
@click.option("--svg", "form", flag_value="svg", help="A picture that is dark on a dark screen.")
@click.option("--mermaid", "form", flag_value="mermaid", help="A Mermaid flowchart.")
@click.option(
    "--mode",
    default="pipeline",
    show_default=True,
    type=click.Choice(("pipeline", "tools")),
    help="How questions are answered.",
)
@platform_option
@one_line_errors
def graph(file: Path | None, form: str | None, mode: "AnswerMode", platform: Path | None) -> None:
    """Draw the pipeline that runs, as Mermaid, SVG or PNG.

    FILE's name says as what; without FILE it is Mermaid, on stdout.
    """
    from app.cli.graph.draw import draw, read_pipeline
    from schemas.errors import ConfigurationError

    form = form or FORMS.get(file.suffix.lower() if file else ".mmd")
    if form is None:
        raise click.UsageError(f"{file}: say --png, --svg or --mermaid")
    if form == "png" and file is None and sys.stdout.isatty():
        raise click.UsageError("a PNG on a terminal is of no use: name a FILE")
    picture = draw(read_pipeline(settings_with(platform), mode), form)
    if file is None:
        sys.stdout.buffer.write(picture)
        return
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None


SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands and options."""
    from click.shell_completion import get_completion_class

    program = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None, "click knows each of SHELLS"
    click.echo(kind(program.command, {}, "apidesk", "_APIDESK_COMPLETE").source())
