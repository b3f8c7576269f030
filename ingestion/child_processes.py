"""Child processes that end when their parent ends; `run_in_child` runs a function in such a process."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def run_in_child(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Call `function` in a new process, and return its result when that process has ended.

    The end of the process frees the memory of the modules that `function` imports. `run_in_child` blocks.
    Raises the errors of `function`, and BrokenProcessPool if the process is killed.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_prepare_child) as pool:
        return pool.submit(function, *args, **kwargs).result()


def exit_with_parent() -> None:
    """Make this child process end when its parent dies. By default, it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this must be called in a child process"

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _prepare_child() -> None:
    """Ignore Ctrl-C, which the terminal also sends to the parent, and exit with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    exit_with_parent()
