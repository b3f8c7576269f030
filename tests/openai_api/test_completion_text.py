"""The text of a completion: citations, pages, doubts and corrections."""

import pytest

from app.api.markdown import render_markdown
from app.api.openai.answer_text import PageNumbering, StreamedText, parse_answer_text, url_citations
from schemas.answer import Answer, CompleteSources, Event, Page, Source, Sources, Step
from schemas.question import StructuredQuestion


def source(number: int = 2, **fields: str) -> Source:
    given = {"title": "Guide", "section": "", "page_url": "", "text": "t"} | fields
    return Source(
        number=number, source="s", document_id="d", api_name="", api_url="", score=1.0, **given
    )  # fmt: skip


def answer_of(*steps: str, nearest: tuple[Page, ...] = ()) -> Answer:
    return Answer(
        id="1", question="q", introduction="", answer=list(steps), related_url=[], type="general",
        structured=StructuredQuestion(type="general"), sources=[], confidence="low", language="en",
        answered_by="extractive", nearest=list(nearest),
    )  # fmt: skip


def stream_text(*parts: str | Answer | list[Source] | None) -> str:
    """Return the streamed text. The events are given as steps, None (restart), sources of a complete answer,
    or the answer.
    """
    streamed = StreamedText()
    for event in parts:
        if isinstance(event, Answer):
            streamed.add(Event("answer", event))
        elif isinstance(event, list):
            streamed.add(Event("sources", CompleteSources(sources=event)))
        elif event is None:
            streamed.add(Event("sources", Sources(sources=[])))
        else:
            streamed.add(Event("step", Step(number=1, text=event, unverified=[], supported=True)))
    return streamed.text


WITHDRAWN = "\n\n---\n\nPlease ignore the text above. Corrected answer:\n\n"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([None, "a", "b", answer_of("a", "b")], "a\n\nb"),
        ([answer_of("a", "b")], "a\n\nb"),
        ([None, None, "a", answer_of("a")], "a"),
        ([None, "a", None, "a", "b", answer_of("a", "b")], "a\n\nb"),
        ([None, "a", None, "x", None, "b", answer_of("b")], f"a{WITHDRAWN}b"),
        ([None, "a", "b", answer_of("a")], f"a\n\nb{WITHDRAWN}a"),
    ],
)
def test_streamed_text_is_continued_or_corrected(
    parts: list[str | Answer | None], text: str
) -> None:
    assert stream_text(*parts) == text


# Citations


def test_citations_are_numbered_by_page() -> None:
    """Clients take `[n]` as the n-th distinct URL among the annotations."""
    a, b, c = (f"https://d.example/{page}" for page in "abc")
    shown = [source(n, page_url=url) for n, url in ((1, a), (2, b), (3, c), (4, b), (5, b))]
    steps = ("x [4][5], y [2]", "z `[5]` items[3] [3]", "w [9]")
    answer = answer_of(*steps).model_copy(update={"sources": shown[1:]})
    numbers = PageNumbering()
    numbers.apply(Event("sources", Sources(sources=shown)))
    streamed = [
        numbers.apply(Event("step", Step(number=1, text=text, unverified=[], supported=True))).data
        for text in steps
    ]
    numbered = numbers.renumber_answer(answer)
    expected = ["x [1], y [1]", "z `[5]` items[2] [2]", "w [9]"]
    assert [step.text for step in streamed if isinstance(step, Step)] == numbered.answer == expected
    assert [(s.number, s.page_url) for s in numbered.sources] == [(1, b), (1, b), (1, b), (2, c)]
    urls = [citation["url"] for citation in url_citations(render_markdown(numbered), numbered)]
    assert urls == [b, c]


def test_source_link_names_the_cited_sections_of_its_page() -> None:
    cited = (("Orders", "Ship"), ("Orders", "Cancel"), ("Orders", "Ship"), ("Refunds", ""))
    sources = [source(1, title=title, section=name, page_url="https://d") for title, name in cited]
    answer = answer_of("a [1]").model_copy(update={"sources": sources, "confidence": "high"})
    text = render_markdown(answer)
    assert text.endswith("**Sources**\n\n- [1] [Orders > Ship, Cancel; Refunds](https://d)")
    (citation,) = url_citations(text, answer)
    assert citation["title"] == "Orders > Ship, Cancel; Refunds"
    assert text[citation["start_index"] : citation["end_index"]].startswith("[Orders")


def test_page_without_a_url_keeps_its_place_among_the_citations() -> None:
    """A missing annotation would shift the numbers, so that clients show another page for `[n]`."""
    sources = [source(1), source(2, page_url="https://d"), source(3)]
    sources[2] = sources[2].model_copy(update={"document_id": "a/b c.md"})
    answer = answer_of("a [1] [2] [3]").model_copy(update={"sources": sources})
    text = render_markdown(answer)
    citations = url_citations(text, answer)
    assert [citation["url"] for citation in citations] == [
        "apidesk://documents/s/d", "https://d", "apidesk://documents/s/a%2Fb%20c.md",
    ]  # fmt: skip
    linked = [text[citation["start_index"] : citation["end_index"]] for citation in citations]
    assert linked == ["Guide", "[Guide](https://d)", "Guide"]
    assert len({citation["start_index"] for citation in citations}) == 3


# Markdown


def test_nearest_pages_are_links() -> None:
    page = Page(title="A *b* [c]", page_url="https://open.example.com/a (b)?c=<d>")
    answer = answer_of("Not covered.", nearest=(page,))
    text = render_markdown(answer)
    assert text == (
        "Not covered.\n\n**Pages that may help**\n\n"
        r"- [A \*b\* \[c\]](https://open.example.com/a%20%28b%29?c=%3Cd%3E)"
    )
    assert parse_answer_text(text) == "Not covered."
    with_sources = answer.model_copy(update={"sources": [source()], "confidence": "high"})
    assert parse_answer_text(render_markdown(with_sources)) == "Not covered."


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"confidence": "high"}, ""),
        ({"confidence": "medium"},
         "> **Note:** This may answer the question only in part. Check it against the pages below."),
        ({"language": "zh"}, "> **提示：** 文档没有明确回答这个问题，请对照下面的页面核对。"),
        ({"sources": []}, ""),
        ({"sources": [], "degraded": "model_timeout"},
         "> **Note:** Degraded: The configured model did not reply in time. A fallback answered instead."),
        ({"sources": [], "unsupported": [1], "unverified": ["user_id", "/v1/x"], "language": "zh"},
         "> **提示：** 文档没有明确回答这个问题，请对照下面的页面核对。  \n"
         "> 文档中没有找到：user_id, /v1/x  \n> 缺少依据的步骤：1"),
    ],
)  # fmt: skip
def test_doubts_are_stated_first(fields: dict[str, object], note: str) -> None:
    answer = answer_of("a [2]", "b").model_copy(update={"sources": [source()]} | fields)
    text = render_markdown(answer)
    assert text.startswith(f"{note}\n\na [2]\n\nb" if note else "a [2]\n\nb")
    assert stream_text(None, answer) == stream_text(answer.sources, "a [2]", "b", answer) == text
    streamed = stream_text(None, "a [2]", answer)
    assert streamed.startswith(f"a [2]\n\nb\n\n{note}".strip())
    assert parse_answer_text(text) == parse_answer_text(streamed) == "a [2]\n\nb"


@pytest.mark.parametrize(
    "text", ["", "**Sources**", "a **Sources**\n\nb", "**Sources**\n\n- a\n\nb", "- a"]
)
def test_text_of_other_origin_is_kept(text: str) -> None:
    assert parse_answer_text(text) == text


def test_source_without_a_page_is_not_a_link() -> None:
    answer = answer_of("a [2]").model_copy(update={"sources": [source()], "confidence": "high"})
    assert render_markdown(answer) == "a [2]\n\n**Sources**\n\n- [2] Guide"
