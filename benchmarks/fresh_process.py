"""Runs a function in a new process, whose memory and locks are released afterwards."""

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")


def in_fresh_process(work: Callable[[], T]) -> T:
    """Run `work()` in a new process and return its result. `work` and the result must be picklable.

    Raises the errors of `work`, and RuntimeError if the process dies without a result.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_received, args=(theirs,))
    process.start()
    theirs.close()
    try:
        # `work` is not an argument of the process, because `start` would wait forever if the process died
        # before it had read a large argument.
        ours.send(work)
        outcome: T | Exception = ours.recv()
    except (EOFError, ConnectionError):
        process.join()
        raise RuntimeError(
            f"the process ended without a result, exit code {process.exitcode}"
        ) from None
    process.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _run_received(connection: Connection) -> None:
    outcome: object
    try:
        outcome = connection.recv()()
    except Exception as error:
        outcome = error
    connection.send(outcome)
    os._exit(0)  # threads of Milvus Lite would keep the process alive
