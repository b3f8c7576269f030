"""`apidesk graph`: the diagram matches the pipeline."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from langchain_core.callbacks import BaseCallbackHandler
from pydantic import SecretStr

from app.cli.graph.diagram import (
    DiagramBranch,
    DiagramParallel,
    DiagramPart,
    DiagramSequence,
    DiagramStep,
)
from app.cli.graph.draw import draw, read_pipeline
from app.cli.graph.layout import Box, lay_out
from app.cli.main import main
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand

ROOT = Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"


NESTED = DiagramSequence(
    (
        DiagramStep("first"),
        DiagramBranch(
            "outer",
            ("is_a", "is_b"),
            (
                DiagramStep("a"),
                DiagramParallel(
                    "a-group-with-a-long-name",
                    (DiagramStep("x"), DiagramSequence((DiagramStep("y"), DiagramStep("z")))),
                ),
                DiagramBranch("inner", ("is_c",), (DiagramStep("c"), DiagramStep("<c> & d"))),
            ),
        ),
        DiagramParallel("last", (DiagramStep("l"), DiagramStep("m"), DiagramStep("n"))),
    )
)


@pytest.fixture(scope="module")
def pipeline(sample_service: AnswerService) -> DiagramPart:
    """The pipeline of the sample platform."""
    return read_pipeline(sample_service.settings, "pipeline")


@pytest.fixture(scope="module")
def tools(sample_service: AnswerService) -> DiagramPart:
    """The pipeline of mode `tools`, with a model."""
    model = {"chat_model": "openai:scripted-chat", "chat_api_key": SecretStr("test-key")}
    settings = sample_service.settings.model_copy(update=model)
    return read_pipeline(settings, "tools")


def names(part: DiagramPart) -> Iterator[str]:
    """All names in `part`."""
    match part:
        case DiagramStep(name):
            yield name
        case DiagramSequence(parts):
            for each in parts:
                yield from names(each)
        case DiagramParallel(name, parts) | DiagramBranch(name, _, parts):
            yield name
            for each in parts:
                yield from names(each)


class Runs(BaseCallbackHandler):
    """Records the names of runs as they start."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


@pytest.mark.parametrize(
    ("question", "runs"),
    [
        ("怎么发货", ["structured-question", "retrieve", "boost-named-api", "answer", "ground"]),
        ("今天天气怎么样", ["structured-question", "retrieve"]),
    ],
    ids=["answered", "refused"],
)
def test_diagram_contains_every_step_that_runs(
    sample_service: AnswerService, pipeline: DiagramPart, question: str, runs: list[str]
) -> None:
    seen = Runs()
    asyncio.run(sample_service.ask(AskCommand(question, callbacks=(seen,))))
    assert seen.names == ["ask", *runs]
    drawn = list(names(pipeline))
    assert [name for name in drawn if name in runs] == runs  # in the same order


def test_tools_mode_contains_research(tools: DiagramPart, pipeline: DiagramPart) -> None:
    assert "research" in names(tools)
    assert "research" not in names(pipeline)


def test_committed_diagram_is_current(pipeline: DiagramPart) -> None:
    """If it fails, run: apidesk graph docs/images/pipeline.svg."""
    picture = ROOT / "docs" / "images" / "pipeline.svg"
    assert picture.read_bytes() == draw(pipeline, "svg")


def test_mermaid_contains_nodes_and_edges(pipeline: DiagramPart) -> None:
    text = draw(pipeline, "mermaid").decode()
    assert [
        name
        for name in names(pipeline)
        if f"({name})" not in text and f"subgraph {name}" not in text
    ] == []
    plain = text.replace("\\3a", ":")
    for edge in (
        "Question --> condense;",
        "route-small-talk:is_small_talk -. &nbsp;yes&nbsp; .-> route-small-talk:acknowledge;",
        "classify-and-retrieve:structured-question --> route-off-topic:is_off_topic;",
        "classify-and-retrieve:retrieve --> route-off-topic:is_off_topic;",
        "route-off-topic:is_off_topic -. &nbsp;no&nbsp; .-> route-off-topic:expand-query;",
        "route-off-topic:ground --> Answer;",
    ):
        assert edge in plain


@pytest.fixture(params=["pipeline", "tools", "nested"])
def part(request: pytest.FixtureRequest) -> DiagramPart:
    """A part to draw."""
    return NESTED if request.param == "nested" else request.getfixturevalue(request.param)


def contains(outer: Box, inner: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def is_disjoint(a: Box, b: Box) -> bool:
    return (
        a.x + a.width <= b.x
        or b.x + b.width <= a.x
        or a.y + a.height <= b.y
        or b.y + b.height <= a.y
    )


def at(x: float, y: float) -> tuple[float, float]:
    """A point, rounded to hide floating point errors."""
    return round(x, 3), round(y, 3)


def test_boxes_are_nested_or_disjoint(part: DiagramPart) -> None:
    drawing = lay_out(part, "Question", "Answer")
    whole = Box("group", "", 0, 0, drawing.width, drawing.height)
    for number, box in enumerate(drawing.boxes):
        assert contains(whole, box)
        for other in drawing.boxes[:number]:
            if other.kind == "group":
                assert contains(other, box) or is_disjoint(other, box), (other, box)
            else:
                assert is_disjoint(other, box), (other, box)


def test_arrows_connect_boxes_downwards(part: DiagramPart) -> None:
    drawing = lay_out(part, "Question", "Answer")
    boxes = [box for box in drawing.boxes if box.kind != "group"]
    tops = {at(box.x + box.width / 2, box.y): box.label for box in boxes}
    bottoms = {at(box.x + box.width / 2, box.y + box.height): box.label for box in boxes}
    entered = {tops[at(*arrow.end)] for arrow in drawing.arrows}
    left = {bottoms[at(*arrow.start)] for arrow in drawing.arrows}
    labels = {box.label for box in boxes}
    assert (entered, left) == (labels - {"Question"}, labels - {"Answer"})
    assert all(arrow.start[1] < arrow.end[1] for arrow in drawing.arrows)


def test_svg_contains_every_name(part: DiagramPart) -> None:
    root = ElementTree.fromstring(draw(part, "svg").decode())
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [name for name in names(part) if name not in texts] == []


def test_png_has_twice_the_size(part: DiagramPart) -> None:
    picture = draw(part, "png")
    drawing = lay_out(part, "Question", "Answer")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20]) > 2 * drawing.width


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["picture.gif"], "picture.gif: pass --png, --svg or --mermaid"),
        (["no/such/folder.svg"], "no/such/folder.svg: No such file or directory"),
        (["--mode", "tools"], "mode tools needs a chat model"),
    ],
)
def test_invalid_options_are_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["graph", *arguments])
    assert result.exit_code == 2
    assert (result.stdout, said in result.stderr) == ("", True), result.output


def test_command_draws_without_a_store(tmp_path: Path, pipeline: DiagramPart) -> None:
    """The command connects to no store and leaves no files."""
    store = {
        "APIDESK_MILVUS_URI": "http://127.0.0.1:9",
        "APIDESK_DATABASE_URL": "sqlite:///no/such",
    }
    picture = tmp_path / "pipeline.svg"
    result = CliRunner().invoke(main, ["graph", str(picture)], env=store)
    assert (result.exit_code, result.output) == (0, "")
    assert picture.read_bytes() == draw(pipeline, "svg")
    result = CliRunner().invoke(main, ["graph"], env=store)
    assert result.stdout.encode() == draw(pipeline, "mermaid")
