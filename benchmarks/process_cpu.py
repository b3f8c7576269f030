"""CPU time of processes, in seconds."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.process_memory import family

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

_UTIME, _CSTIME = 11, 14
"""First and last of the four times in /proc/PID/stat after the name: own and those of ended children."""


class CommandUsage(NamedTuple):
    """What a command has used, including the processes that it started."""

    cpu_s: float
    peak_mb: float
    """Highest resident memory of its largest process."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all its descendants, also of those that have ended."""
    return sum(map(_process_seconds, family(pid)))


def measure_command(command: Sequence[str], environment: Mapping[str, str]) -> CommandUsage:
    """Run `command` to its end, with `environment` added to this process's environment.

    Raises RuntimeError with its output if it fails.
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
