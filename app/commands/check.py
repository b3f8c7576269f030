"""`apidesk check`: do the models answer?."""

import asyncio
import sys
from pathlib import Path

import click

from app.commands.command import EXIT_FAILED, one_line_errors, platform_option, settings_with


@click.command()
@platform_option
@one_line_errors
def check(platform: Path | None) -> None:
    """Try every configured model with one tiny call."""
    from app.model_check import check_models
    from app.terminal.printing import print_checks

    checks = asyncio.run(check_models(settings_with(platform)))
    print_checks(checks)
    if any(check.problem for check in checks):
        sys.exit(EXIT_FAILED)
