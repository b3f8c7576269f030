"""Draws a pipeline as Mermaid, using LangChain's graph."""

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.graph import Graph, Node

from app.cli.graph.parts import (
    DiagramBranch,
    DiagramParallel,
    DiagramPart,
    DiagramSequence,
    DiagramStep,
)

BEGIN, END = "Question", "Answer"


@dataclass(frozen=True)
class _OpenEdge:
    """An edge whose target is not known yet."""

    source: Node
    label: str | None = None
    """Condition under which the edge is taken."""


def draw_mermaid(part: DiagramPart) -> str:
    """Return the text of a Mermaid flowchart."""
    builder = _GraphBuilder()
    first = builder.add_node(BEGIN, "")
    open_edges = builder.add(part, [_OpenEdge(first)], "")
    last = builder.add_node(END, "")
    builder.connect(open_edges, last)
    return builder.graph.draw_mermaid()


class _GraphBuilder:
    """Builds a graph. LangChain groups nodes into subgraphs by the part of their ids before a colon."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add_node(self, name: str, group: str) -> Node:
        """Add a node to the subgraph `group`, if not empty; repeated names are numbered."""
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
                for each in parts:
                    incoming = self.add(each, incoming, group)
                return incoming
            case DiagramParallel(name, parts):
                return [edge for each in parts for edge in self.add(each, incoming, name)]
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
