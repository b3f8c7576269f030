"""Explains why SQLite cannot use a file. SQLite's own messages do not name the likely causes.

A module of its own, because the database and the snapshot of the embedded store share it.
"""

import sqlite3

_DISK = "no space is left on its disk, or the disk is failing"
_READ_ONLY = (
    "it cannot be written: check its folder's permissions and whether the disk is read-only"
)
_NOT_OPENED = (
    "it cannot be opened: check its path, its folder's permissions "
    "and whether the disk is read-only"
)
_DAMAGED = "it is damaged"
_PROBLEMS = {
    sqlite3.SQLITE_FULL: _DISK,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _NOT_OPENED,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "another process is writing to it",
}


def sqlite_problem(error: BaseException | None) -> str:
    """Return why SQLite cannot use the file; empty if `error` has none of the known causes."""
    code = getattr(error, "sqlite_errorcode", 0)
    return _PROBLEMS.get(code & 0xFF, "")  # the low byte of an extended code is the primary code


def is_damaged(error: BaseException | None) -> bool:
    """Return whether SQLite found that the content of the file is damaged."""
    return sqlite_problem(error) == _DAMAGED
