"""`apidesk completion`: the shell's own completion."""

import click

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
