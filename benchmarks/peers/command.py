"""The command line of all peers: `serve` and `ingest`."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import uvicorn

from benchmarks.peers.passages import Passage, read_passages

App = Any
"""An ASGI application."""

Indexing = Callable[[], Awaitable[object]]
"""Updates the index from the passages. A benchmark calls it twice, the second time without changes."""


@dataclass(frozen=True)
class Site:
    """The arguments of a peer: its documents and its model server."""

    documents: Path
    model_url: str

    @property
    def passages(self) -> list[Passage]:
        """The passages in the file `documents`."""
        return read_passages(self.documents)


class AnnouncingServer(uvicorn.Server):
    """A server that prints the URL for questions as soon as it can answer them."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start and print the URL."""
        await super().startup(sockets=sockets)
        if not self.should_exit:
            print(self._url, flush=True)


def peer(
    app: Callable[[Site], App],
    indexing: Callable[[Site], Indexing] | None = None,
    path: str = "/ask",
) -> click.Group:
    """Return the command line of a peer whose `app` answers questions at `path`.

    The command `ingest` exists only if `indexing` is given.
    """
    group = click.Group()
    options = [
        click.Option(["--documents"], type=click.Path(path_type=Path, exists=True), required=True),
        click.Option(["--model-url"], required=True),
    ]

    def serve_site(**given: Any) -> None:
        serve(app(Site(**given)), path)

    group.add_command(click.Command("serve", params=list(options), callback=serve_site))
    if indexing is not None:

        def ingest_site(**given: Any) -> None:
            site = Site(**given)
            click.echo(json.dumps(asyncio.run(ingest(site, indexing))))

        group.add_command(click.Command("ingest", params=list(options), callback=ingest_site))
    return group


def serve(app: App, path: str) -> None:
    """Serve on a free port of 127.0.0.1, without an access log."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    AnnouncingServer(config, url).run(sockets=[listener])


async def ingest(site: Site, indexing: Callable[[Site], Indexing]) -> dict[str, float]:
    """Return the number of passages, and the seconds to index them and to index them again unchanged."""
    index = indexing(site)
    durations: list[float] = []
    for _ in range(2):
        began = time.perf_counter()
        await index()
        durations.append(time.perf_counter() - began)
    return {"chunks": len(site.passages), "first": durations[0], "second": durations[1]}
