"""The structure of the pipeline as a diagram, and the diagram as Mermaid.

LangChain's `get_graph()` shows a Runnable that calls others as a single box.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.graph import Graph, Node

from runnables.pipeline import AnswerSteps, PipelineSteps

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
    """Parts that run concurrently."""

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


def pipeline_diagram(steps: PipelineSteps) -> DiagramPart:
    """Return the diagram of the pipeline with `steps`.

    A test compares its names with the runs of questions.
    """
    classify_and_retrieve = DiagramParallel(
        "classify-and-retrieve", _named(steps.classify.get_name(), steps.retrieve.get_name())
    )
    research = _named(steps.research.get_name()) if steps.research else ()
    respond = (
        *_named("expand-query", steps.boost_named_api.get_name()),
        *research,
        *_draft_parts(steps.answer),
        *_named(steps.ground.get_name()),
    )
    off_topic = DiagramBranch(
        "route-off-topic", ("is_off_topic",), (DiagramStep("refuse"), DiagramSequence(respond))
    )
    small_talk = DiagramBranch(
        "route-small-talk",
        ("is_small_talk",),
        (DiagramStep("acknowledge"), DiagramSequence((classify_and_retrieve, off_topic))),
    )
    return DiagramSequence((DiagramStep(steps.condense.get_name()), small_talk))


def _draft_parts(answer: AnswerSteps) -> tuple[DiagramPart, ...]:
    if answer.write is None:
        return _named(answer.quote.get_name())
    names = [*(["web"] if answer.search_web else []), "add-evidence", answer.write.get_name()]
    return _named(*names)


def _named(*names: str) -> tuple[DiagramPart, ...]:
    return tuple(map(DiagramStep, names))


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
