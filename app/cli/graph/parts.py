"""Reads the structure of a Runnable: its steps, sequences, parallels and branches.

LangChain's `get_graph()` draws a branch as one box and drops the names of composites. This module reads
the Runnables by type instead, and leaves out those that only pass a value on.
"""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
)
from langchain_core.runnables.base import RunnableBindingBase

AnyRunnable = Runnable[Any, Any]


@dataclass(frozen=True)
class DiagramStep:
    """A single step."""

    name: str


@dataclass(frozen=True)
class DiagramSequence:
    """Parts that run one after the other."""

    parts: tuple["DiagramPart", ...]


@dataclass(frozen=True)
class DiagramParallel:
    """Parts that run concurrently, or that a step calls itself."""

    name: str
    parts: tuple["DiagramPart", ...]


@dataclass(frozen=True)
class DiagramBranch:
    """Runs the arm of the first condition that holds, else the last arm."""

    name: str
    conditions: tuple[str, ...]
    arms: tuple["DiagramPart", ...]
    """One arm per condition, and the default arm."""


DiagramPart = DiagramStep | DiagramSequence | DiagramParallel | DiagramBranch


def read_parts(runnable: AnyRunnable) -> DiagramPart:
    """Read the structure of `runnable`."""
    return _read(runnable, None) or DiagramStep(runnable.get_name())


def _read(runnable: AnyRunnable, name: str | None) -> DiagramPart | None:
    """None if `runnable` only passes a value on; `name` is the run name set by a binding around it."""
    match runnable:
        case RunnableBindingBase():
            return _read(runnable.bound, runnable.config.get("run_name") or name)
        case RunnableSequence():
            return _sequence(runnable.steps)
        case RunnableParallel():
            return _parallel(name or runnable.get_name(), list(runnable.steps__.values()))
        case RunnableBranch():
            return _branch(name or runnable.get_name(), runnable)
        case RunnablePassthrough():
            return None
        case RunnableLambda() if runnable.deps:
            return _parallel(name or runnable.get_name(), runnable.deps)
        case _:
            return DiagramStep(name or runnable.get_name())


def _sequence(runnables: list[AnyRunnable]) -> DiagramPart | None:
    parts = _read_all(runnables)
    return DiagramSequence(parts) if len(parts) > 1 else next(iter(parts), None)


def _parallel(name: str, runnables: list[AnyRunnable]) -> DiagramPart:
    return DiagramParallel(name, _read_all(runnables))


def _branch(name: str, branch: RunnableBranch[Any, Any]) -> DiagramPart:
    conditions = tuple(condition.get_name() for condition, _ in branch.branches)
    arms = [*(arm for _, arm in branch.branches), branch.default]
    return DiagramBranch(name, conditions, tuple(map(read_parts, arms)))


def _read_all(runnables: list[AnyRunnable]) -> tuple[DiagramPart, ...]:
    read = (_read(runnable, None) for runnable in runnables)
    return tuple(part for part in read if part is not None)
