"""A PostgreSQL server for tests, with its data and its socket in a temporary folder."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

USER = "apidesk"

DEBIAN = Path("/usr/lib/postgresql")
"""The folder of the server's programs on Debian, which is not in PATH."""

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""Options for speed: data of tests need not survive a power failure."""


class Postgres:
    """A running server and its databases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def empty_database(self) -> str:
        """Empty the shared database and return its URL."""
        self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self._url("postgres")

    def new_database(self) -> str:
        """Create a separate database, which is slow, and return its URL."""
        name = f"test_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def allow_connections(self, url: str, allowed: bool) -> None:
        """Allow or refuse connections to the database. Refusing also ends open connections."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}")
        if not allowed:
            self.end_connections(url)

    def end_connections(self, url: str) -> None:
        """End every connection to the database, as a restart does, and wait until they have ended."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            f"WHERE datname = '{name}'"
        )

    def execute(self, statement: str) -> None:
        """Execute a statement in the shared database."""
        with psycopg.connect(
            host=str(self._folder), user=USER, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def _url(self, name: str) -> str:
        """Return the URL without a driver, as users write it."""
        return f"postgresql://{USER}@/{name}?host={self._folder}"


def missing_postgres() -> str | None:
    """Return why no server can run on this machine; None if one can."""
    if _program("initdb") and _program("postgres"):
        return None
    return "PostgreSQL's initdb and postgres are not installed"


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Run a server within the block. If this process is root, the server runs as user `nobody`."""
    # Not pytest's folder: only root can enter it.
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder = Path(name)
        process: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            process |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        with (folder / "log").open("wb") as log:
            subprocess.run(_initdb(folder), check=True, stderr=log, **process)
            server = subprocess.Popen(_postgres(folder), stderr=log, **process)
        try:
            _wait(server, folder)
            yield Postgres(folder)
        finally:
            server.send_signal(signal.SIGINT)  # does not wait for open connections
            server.wait(60)


def _initdb(folder: Path) -> list[str]:
    options = ["--username", USER, "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]
    return [_program("initdb"), "--pgdata", str(folder / "data"), *options]


def _postgres(folder: Path) -> list[str]:
    settings = FAST | {"listen_addresses": "", "unix_socket_directories": str(folder)}
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [_program("postgres"), "-D", str(folder / "data"), *options]


def _program(name: str) -> str:
    """Path of the program; empty if it is not installed."""
    places = [os.environ["PATH"], *map(str, sorted(DEBIAN.glob("*/bin"), reverse=True))]
    return shutil.which(name, path=os.pathsep.join(places)) or ""


def _wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(500):
        assert server.poll() is None, (folder / "log").read_text()
        try:
            return Postgres(folder).execute("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.02)
    raise AssertionError((folder / "log").read_text())
