"""The steps of an answer on a terminal, as they come; what is printed at the end takes their place."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner

from app.terminal.markdown import Markdown
from runnables.listener import EventSink
from schemas.events import Event, Sources, Step


@asynccontextmanager
async def live_answer() -> AsyncIterator[EventSink | None]:
    """A listener that shows what it is told on stderr; None where that is no terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield None
        return
    steps: list[Step] = []

    def shown() -> Group:
        written = "\n".join(f"{step.number}. {step.text}" for step in steps)
        return Group(Markdown(written), Spinner("dots"))

    with Live(shown(), console=console, transient=True, refresh_per_second=8) as live:

        async def show(event: Event) -> None:
            if isinstance(event.data, Sources):
                steps.clear()
            elif isinstance(event.data, Step):
                steps.append(event.data)
            live.update(shown(), refresh=True)

        yield show
