"""The command line. Heavy imports stand in the commands that use them: `--help` is instant."""

import click

from app.commands.ask import ask
from app.commands.chat import chat
from app.commands.check import check
from app.commands.completion import completion
from app.commands.evaluate import evaluate
from app.commands.graph import graph
from app.commands.ingest import ingest
from app.commands.init import init
from app.commands.insights import insights
from app.commands.keys import keys
from app.commands.mcp import mcp
from app.commands.replay import replay
from app.commands.schedule import schedule
from app.commands.serve import serve

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
    """Answers developers' questions about an open platform from its own documentation."""


for command in COMMANDS:
    main.add_command(command)
