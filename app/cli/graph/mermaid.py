"""Parts as LangChain's own graph, which knows how to write Mermaid."""

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
    """An edge that has not found its target: `label` says when it is gone along."""

    source: Node
    label: str | None = None


def draw_mermaid(part: DiagramPart) -> str:
    """The text of a Mermaid flowchart; no picture is fetched from anywhere."""
    drawing = _GraphBuilder()
    first = drawing.node(BEGIN, "")
    loose = drawing.add(part, [_OpenEdge(first)], "")
    last = drawing.node(END, "")
    drawing.join(loose, last)
    return drawing.graph.draw_mermaid()


class _GraphBuilder:
    """A graph in the making. LangChain makes a subgraph of nodes whose ids begin alike, up to a colon."""

    def __init__(self) -> None:
        self.graph = Graph()

    def node(self, name: str, group: str) -> Node:
        """A node of the subgraph `group`, or of none; a second one of that name has a number."""
        wanted = f"{group}:{name}" if group else name
        number, free = 1, wanted
        while free in self.graph.nodes:
            number += 1
            free = f"{wanted} {number}"
        node = Node(id=free, name=name, data=RunnableLambda(str, name=name), metadata=None)
        self.graph.nodes[free] = node
        return node

    def join(self, loose: Iterable[_OpenEdge], target: Node) -> None:
        """Every loose edge leads to `target`."""
        for edge in loose:
            conditional = edge.label is not None
            self.graph.add_edge(edge.source, target, edge.label, conditional)

    def add(self, part: DiagramPart, loose: list[_OpenEdge], group: str) -> list[_OpenEdge]:
        """`part`, reached by the edges in `loose`; the edges that leave it."""
        match part:
            case DiagramStep(name):
                node = self.node(name, group)
                self.join(loose, node)
                return [_OpenEdge(node)]
            case DiagramSequence(parts):
                for each in parts:
                    loose = self.add(each, loose, group)
                return loose
            case DiagramParallel(name, parts):
                return [left for each in parts for left in self.add(each, loose, name)]
            case DiagramBranch():
                return self._add_choice(part, loose)

    def _add_choice(self, choice: DiagramBranch, loose: list[_OpenEdge]) -> list[_OpenEdge]:
        left: list[_OpenEdge] = []
        for condition, arm in zip(choice.conditions, choice.arms, strict=False):
            node = self.node(condition, choice.name)
            self.join(loose, node)
            left += self.add(arm, [_OpenEdge(node, "yes")], choice.name)
            loose = [_OpenEdge(node, "no")]
        return left + self.add(choice.arms[-1], loose, choice.name)
