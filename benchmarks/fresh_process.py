"""Runs a function in a new process, whose memory and locks are released afterwards."""

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")


def in_fresh_process(work: Callable[[], T]) -> T:
    """Return the result of `work()` in a new process. Both must be picklable.

    Raises the errors of `work`, and RuntimeError if the process dies without a result.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,))
    process.start()
    theirs.close()
    try:
        # Not as an argument: `start` waits forever for a process that died before it read much.
        ours.send(work)
        outcome: T | Exception = ours.recv()
    except (EOFError, ConnectionError):
        process.join()
        raise RuntimeError(f"the process ended with {process.exitcode} and no answer") from None
    process.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _answer(connection: Connection) -> None:
    outcome: object
    try:
        outcome = connection.recv()()
    except Exception as error:
        outcome = error
    connection.send(outcome)
    os._exit(0)  # Milvus Lite's threads would hold the process
