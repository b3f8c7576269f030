"""A real PostgreSQL for tests: a cluster in a folder of its own, on a socket that lies there too."""

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
"""Where Debian keeps the server's programs, outside of PATH."""

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""Nothing that a test writes has to survive a power cut."""


class Postgres:
    """A server that runs, and the databases made in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def emptied(self) -> str:
        """The url of the database that tests share, one after the other, with nothing in it."""
        self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self._url("postgres")

    def new_database(self) -> str:
        """The url of a database of one's own; it takes a while to make."""
        name = f"test_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return self._url(name)

    def let_in(self, url: str, allowed: bool) -> None:
        """Whether the database may be used; if not, whoever does is thrown out."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}")
        if not allowed:
            self.throw_out(url)

    def throw_out(self, url: str) -> None:
        """End every connection to the database, as a restart would."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )

    def execute(self, statement: str) -> None:
        """Run a statement in the database that tests share."""
        with psycopg.connect(
            host=str(self._folder), user=USER, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def _url(self, name: str) -> str:
        """Without a driver, as users write it."""
        return f"postgresql://{USER}@/{name}?host={self._folder}"


def missing_postgres() -> str | None:
    """Why there can be no server here, if so."""
    if _program("initdb") and _program("postgres"):
        return None
    return "PostgreSQL's initdb and postgres are not installed"


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server, while the block lasts. It refuses to be root, so then it is nobody."""
    # Not pytest's own folder: only root may go through that one.
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
            server.send_signal(signal.SIGINT)  # without waiting for those who are connected
            server.wait(60)


def _initdb(folder: Path) -> list[str]:
    options = ["--username", USER, "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]
    return [_program("initdb"), "--pgdata", str(folder / "data"), *options]


def _postgres(folder: Path) -> list[str]:
    settings = FAST | {"listen_addresses": "", "unix_socket_directories": str(folder)}
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [_program("postgres"), "-D", str(folder / "data"), *options]


def _program(name: str) -> str:
    """Its path, or nothing."""
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
