"""CPU time of processes, in seconds."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.process_memory import family

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

_UTIME, _CSTIME = 11, 14
"""Positions of the first and the last of four times in /proc/PID/stat, from 0 after the process's name.

The times are the user and system time of the process, then those of its children that have ended.
"""


class CommandUsage(NamedTuple):
    """CPU time and memory that a command has used, including the processes that it started."""

    cpu_s: float
    peak_mb: float
    """Peak resident memory of the largest of these processes."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all its descendants, including those that have ended."""
    return sum(map(_process_seconds, family(pid)))


def measure_command(command: Sequence[str], environment: Mapping[str, str]) -> CommandUsage:
    """Run `command` until it ends, with `environment` added to the environment of this process.

    Raises RuntimeError with the output of the command if the command fails.
    """
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        text=True,
    )
    assert process.stderr is not None
    output = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {output[-2000:]}")
    return CommandUsage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _process_seconds(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    times = text.rpartition(")")[2].split()[_UTIME : _CSTIME + 1]
    return sum(map(int, times)) / _CLOCK_TICKS
