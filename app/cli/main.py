"""The entry point of the command line: the group `apidesk` with all commands.

Commands import heavy modules inside their functions, so that `--help` is fast.
"""

import click

from app.cli.commands.analysis import evaluate, insights, replay
from app.cli.commands.platform import check, graph, ingest, init
from app.cli.commands.questions import ask, chat
from app.cli.commands.serve import keys, mcp, schedule, serve

SHELLS = ("bash", "zsh", "fish")


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


COMMANDS = (
    init,
    serve,
    ingest,
    schedule,
    check,
    ask,
    chat,
    evaluate,
    keys,
    insights,
    replay,
    mcp,
    graph,
    completion,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="apidesk")
def main() -> None:
    """Answer developers' questions about an open platform from its documentation."""


for command in COMMANDS:
    main.add_command(command)
