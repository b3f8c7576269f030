"""Reads the structure of a pipeline from its Runnables, and draws it as Mermaid.

LangChain's `get_graph()` draws a branch as one box and omits the names of composites. This module reads
the steps, sequences, parallels and branches instead, and omits Runnables that only pass a value on.
"""

from collections.abc import Iterable
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
from langchain_core.runnables.graph import Graph, Node

AnyRunnable = Runnable[Any, Any]

BEGIN, END = "Question", "Answer"


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
    """Runs the arm of the first condition that is true, or the last arm if all are false."""

    name: str
    conditions: tuple[str, ...]
    arms: tuple["DiagramPart", ...]
    """One arm per condition, followed by the default arm."""


DiagramPart = DiagramStep | DiagramSequence | DiagramParallel | DiagramBranch


def read_parts(runnable: AnyRunnable) -> DiagramPart:
    """Read the structure of `runnable`."""
    return _read(runnable, None) or DiagramStep(runnable.get_name())


def _read(runnable: AnyRunnable, name: str | None) -> DiagramPart | None:
    """Return the part for `runnable`, or None if it only passes a value on.

    `name` is the run name that an enclosing binding sets.
    """
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


@dataclass(frozen=True)
class _OpenEdge:
    """An edge whose target is not known yet."""

    source: Node
    label: str | None = None
    """The result of the condition at `source`, "yes" or "no"; None if `source` is not a condition."""


def draw_mermaid(part: DiagramPart) -> str:
    """Return the text of a Mermaid flowchart."""
    builder = _GraphBuilder()
    first = builder.add_node(BEGIN, "")
    open_edges = builder.add(part, [_OpenEdge(first)], "")
    last = builder.add_node(END, "")
    builder.connect(open_edges, last)
    return builder.graph.draw_mermaid()


class _GraphBuilder:
    """Builds a LangChain graph. The part of a node's id before the colon is the subgraph of the node."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add_node(self, name: str, group: str) -> Node:
        """Add a node to the subgraph `group`, if it is not empty. Repeated names are numbered."""
        base_id = f"{group}:{name}" if group else name
        number, node_id = 1, base_id
        while node_id in self.graph.nodes:
            number += 1
            node_id = f"{base_id} {number}"
        node = Node(id=node_id, name=name, data=RunnableLambda(str, name=name), metadata=None)
        self.graph.nodes[node_id] = node
        return node

    def connect(self, open_edges: Iterable[_OpenEdge], target: Node) -> None:
        """Connect all open edges to `target`."""
        for edge in open_edges:
            conditional = edge.label is not None
            self.graph.add_edge(edge.source, target, edge.label, conditional)

    def add(self, part: DiagramPart, incoming: list[_OpenEdge], group: str) -> list[_OpenEdge]:
        """Add `part`, connect the `incoming` edges to it, and return its outgoing edges."""
        match part:
            case DiagramStep(name):
                node = self.add_node(name, group)
                self.connect(incoming, node)
                return [_OpenEdge(node)]
            case DiagramSequence(parts):
                for step in parts:
                    incoming = self.add(step, incoming, group)
                return incoming
            case DiagramParallel(name, parts):
                return [edge for step in parts for edge in self.add(step, incoming, name)]
            case DiagramBranch():
                return self._add_branch(part, incoming)

    def _add_branch(self, branch: DiagramBranch, incoming: list[_OpenEdge]) -> list[_OpenEdge]:
        outgoing: list[_OpenEdge] = []
        for condition, arm in zip(branch.conditions, branch.arms, strict=False):
            node = self.add_node(condition, branch.name)
            self.connect(incoming, node)
            outgoing += self.add(arm, [_OpenEdge(node, "yes")], branch.name)
            incoming = [_OpenEdge(node, "no")]
        return outgoing + self.add(branch.arms[-1], incoming, branch.name)
