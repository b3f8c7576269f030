"""The Responses API, tested with OpenAI's client over a real server."""

import json
from typing import Any

from openai import OpenAI

from tests.model_replies import STEPS, MakeClient, draft, structured
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.openai_api.openai_client import QUESTION, complete, user


def test_response_equals_the_completion(plain: OpenAI) -> None:
    completion = complete(plain, user(QUESTION)).choices[0].message
    response = plain.responses.create(
        model="apidesk", input=QUESTION, instructions="Be brief.", temperature=0.2
    )
    assert (response.output_text, response.status) == (completion.content, "completed")
    assert response.usage is not None
    assert response.usage.total_tokens == 0
    (item,) = response.output
    assert item.type == "message"
    (part,) = item.content
    assert part.type == "output_text"
    cited = [note.url_citation.model_dump() for note in completion.annotations or []]
    assert [note.model_dump(exclude={"type"}) for note in part.annotations] == cited
    details = (response.model_extra or {})["apidesk"]
    assert details["sources"] == (completion.model_extra or {})["apidesk"]["sources"]


def test_response_streams_steps(scripted: OpenAI, model_server: ModelServer) -> None:
    """The client's own accumulator accepts the events."""
    model_server.reply(structured(), draft(*STEPS))
    with scripted.responses.stream(model="apidesk", input=QUESTION) as stream:
        received = list(stream)
        response = stream.get_final_response()
    deltas = [event.delta for event in received if event.type == "response.output_text.delta"]
    assert deltas[0] == STEPS[0]
    assert "".join(deltas) == response.output_text
    kinds = [event.type for event in received]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added",
    ]  # fmt: skip
    assert kinds[-1] == "response.completed"
    assert "response.output_text.annotation.added" in kinds
    numbers = [event.sequence_number for event in received if event.type != "response.completed"]
    assert numbers == list(range(len(received) - 1))


def test_response_uses_the_earlier_messages(plain: OpenAI) -> None:
    first = plain.responses.create(model="apidesk", input=QUESTION)
    messages: Any = [
        user(QUESTION),
        *(item.model_dump() for item in first.output),
        user("那错误码呢"),
    ]
    details = plain.responses.create(model="apidesk", input=messages).model_extra or {}
    source = details["apidesk"]["sources"][0]
    assert (source["apiName"], source["section"]) == ("订单发货", "错误码")


def test_reference_to_an_item_counts_as_its_answer(plain: OpenAI) -> None:
    """The Vercel AI SDK refers to earlier answers by the IDs of their items."""
    first = plain.responses.create(model="apidesk", input=QUESTION)
    references: Any = [{"type": "item_reference", "id": item.id} for item in first.output]
    messages: Any = [user(QUESTION), *references, user("那错误码呢")]
    details = plain.responses.create(model="apidesk", input=messages).model_extra or {}
    source = details["apidesk"]["sources"][0]
    assert (source["apiName"], source["section"]) == ("订单发货", "错误码")


def test_response_error_is_sent_as_an_event(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(structured(), *[Reply("no", status=400)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "input": QUESTION, "stream": True}
    lines = [line.strip() for line in http.post("/v1/responses", json=body).text.split("\n")]
    model_server.replies.clear()
    assert lines.count("event: error") == 1
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    error = json.loads(data[-1])
    assert (error["type"], error["code"], error["param"]) == ("error", "model_refused", None)
