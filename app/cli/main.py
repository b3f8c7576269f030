"""The entry point of the command line, the group `apidesk` with its commands.

Commands import heavy modules inside their functions, so that `--help` is fast.
"""

import click

from app.cli.commands.analysis import evaluate, insights, replay
from app.cli.commands.graph import completion, graph
from app.cli.commands.ingest import ingest
from app.cli.commands.keys import keys
from app.cli.commands.platform import check, init
from app.cli.commands.questions import ask, chat
from app.cli.commands.serve import mcp, schedule, serve

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
