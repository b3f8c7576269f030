"""OpenAPI descriptions: the documents of webhooks and callbacks."""

from pathlib import Path
from typing import Any

import pytest

from ingestion.sources.openapi.events import MAX_CALLBACKS, MAX_FIELDS
from ingestion.text.markdown_blocks import parse_table
from schemas.document import SourceDocument
from schemas.errors import SourceError
from tests.openapi_descriptions import Json, one, read, small, write

PORTED: Json = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "readOnly": True, "description": "Id of the number."},
        "note": {"type": "string", "writeOnly": True},
    },
}


def request(**fields: Any) -> Json:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ported"}}}}
    return {"requestBody": body, "responses": {"204": {"description": "Received."}}} | fields


def described(**fields: Any) -> Json:
    """A description with schemas, servers and security."""
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    common: Json = {
        "components": {"schemas": {"Ported": PORTED}, "securitySchemes": schemes},
        "servers": [{"url": "https://hall.example.com/v1"}],
        "security": [{"key": ["numbers:read"]}],
    }
    return small(**common, **fields)


def events(tmp_path: Path, content: Json) -> list[SourceDocument | SourceError]:
    _, *found = read(write(tmp_path / "api.json", content))
    return [each for each in found if isinstance(each, SourceDocument | SourceError)]


def event(tmp_path: Path, content: Json) -> SourceDocument:
    (found,) = events(tmp_path, content)
    assert isinstance(found, SourceDocument), found
    return found


@pytest.mark.parametrize("key", ["webhooks", "x-webhooks"])
def test_webhook_becomes_a_document_with_a_table_of_its_payload(tmp_path: Path, key: str) -> None:
    signature = {"name": "X-Signature", "in": "header", "required": True, "schema": {}}
    sent = request(summary="Number ported", description="Sent after a port-in.", tags=["numbers"])
    content = described(**{key: {"ported": {"post": sent | {"parameters": [signature]}}}})
    document = event(tmp_path, content)
    assert (document.id, document.title, document.service_id) == (
        "POST ported", "Number ported", "numbers",
    )  # fmt: skip
    (section,) = document.sections
    assert (section.kind, section.heading) == ("prose", ())
    start, table, end = section.body.partition(
        "| Name | Type | Required | Description | Example | In |"
    )
    assert start == (
        "Sent after a port-in.\n\nThe platform sends this request to your server.\n\n"
        "- Webhook: `ported`\n- Method: `POST`\n\n"
    )
    assert parse_table(table + end)[1:] == [
        ["Content-Type", "string", "Yes", "", "application/json", "header"],
        ["X-Signature", "any", "Yes", "", "", "header"],
        ["id", "string", "Yes", "Id of the number.", "", "body"],
    ]
    assert end.endswith("**Expected response**\n\nSuccess status code: `204` Received.")


def test_webhook_does_not_look_like_an_operation_to_call(tmp_path: Path) -> None:
    document = event(tmp_path, described(webhooks={"ported": {"post": request()}}))
    assert (document.api_id, document.api_name, document.api_url) == ("", "", "")
    for text in ("hall.example.com", "X-Key", "numbers:read"):
        assert text not in document.sections[0].body


@pytest.mark.parametrize(
    ("fields", "title"),
    [({"summary": "Number ported"}, "Number ported"),
     ({"operationId": "onPorted", "description": "Sent later."}, "ported")],
)  # fmt: skip
def test_webhook_is_named_by_its_summary_or_key(tmp_path: Path, fields: Json, title: str) -> None:
    assert event(tmp_path, described(webhooks={"ported": {"post": fields}})).title == title


def test_webhook_may_be_a_reference(tmp_path: Path) -> None:
    content = described(webhooks={"ported": {"$ref": "#/x-items/Ported"}, "lost": {"$ref": "#/x"}})
    document, error = events(tmp_path, content | {"x-items": {"Ported": {"post": request()}}})
    assert isinstance(document, SourceDocument)
    assert str(error) == "lost: $ref '#/x' cannot be resolved"


def test_webhooks_of_a_chinese_description_have_chinese_labels(tmp_path: Path) -> None:
    sent = request(description="携号转网完成后发送。", deprecated=True)
    path = write(tmp_path / "api.json", described(webhooks={"ported": {"post": sent}}))
    document = read(path, language="zh")[1]
    assert isinstance(document, SourceDocument)
    assert document.sections[0].body.startswith(
        "**该接口已废弃。**\n\n携号转网完成后发送。\n\n该请求由平台"
    )


def test_callback_becomes_a_document_that_names_its_operation(tmp_path: Path) -> None:
    url = "{$request.body#/callbackUrl}"
    buy = {"summary": "Buy a number", "callbacks": {"onPorted": {url: {"post": request()}}}}
    document = event(tmp_path, described(paths={"/numbers": {"post": buy}}))
    assert (document.id, document.title, document.api_url) == (f"POST {url}", "onPorted", "")
    assert (
        f"- Callback: `onPorted`\n- Method: `POST`\n- Sent to: `{url}`\n"
        "- Sent after: Buy a number\n\n"
    ) in document.sections[0].body


def test_callback_of_several_operations_is_one_document(tmp_path: Path) -> None:
    shared = {"callbacks": {"onPorted": {"$ref": "#/x-callback"}}}
    content = described(paths={"/numbers": {"post": shared, "put": shared}})
    _, *found = events(tmp_path, content | {"x-callback": {"{$url}": {"post": request()}}})
    (document,) = found
    assert isinstance(document, SourceDocument)
    assert document.sections[0].body.count("- Sent after: ") == 2


def test_unreadable_callback_does_not_refuse_its_operation(tmp_path: Path) -> None:
    broken = {"a": {"$ref": "#/x"}, "b": {"{$url}": {"post": 1}}, "c": None, "d": []}
    errors = events(tmp_path, described(paths={"/numbers": {"post": {"callbacks": broken}}}))
    assert list(map(str, errors)) == [
        "POST /numbers: a: $ref '#/x' cannot be resolved",
        "POST {$url}: not an operation object",
    ]


def test_number_of_callbacks_is_limited(tmp_path: Path) -> None:
    many: list[Json] = [
        {f"on{n}": {"{$url}": {"post": {}}} for n in range(MAX_CALLBACKS + 1)},
        {"on": {f"{{$url}}/{n}": {"post": {}} for n in range(MAX_CALLBACKS + 1)}},
    ]
    for callbacks in many:
        content = described(paths={"/numbers": {"post": {"callbacks": callbacks}}})
        assert len(events(tmp_path, content)) == MAX_CALLBACKS


def test_description_without_paths_may_have_webhooks(tmp_path: Path) -> None:
    assert one(tmp_path, small(paths={}, webhooks={"ported": {"post": {}}})).title == "ported"


def test_deeply_nested_fields_of_large_payloads_are_left_out(tmp_path: Path) -> None:
    def owner(count: int) -> Json:
        return {
            "type": "object",
            "properties": {f"field_{i}": {"type": "string"} for i in range(count)},
        }

    def names(count: int) -> list[str]:
        schema = {"type": "object", "properties": {"id": {"type": "string"}, "owner": owner(count)}}
        sent = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
        document = event(tmp_path, small(webhooks={"ported": {"post": request() | sent}}))
        _, content_type, *rows = parse_table(document.sections[0].body)
        assert content_type[0] == "Content-Type"
        return [row[0] for row in rows]

    assert names(3) == ["id", "owner", "owner.field_0", "owner.field_1", "owner.field_2"]
    assert names(MAX_FIELDS) == ["id", "owner"]


def test_events_state_errors_and_extensions_are_no_callbacks(tmp_path: Path) -> None:
    responses = {
        "responses": {"204": {"description": "Received."}, "410": {"description": "Unsubscribed."}}
    }
    callbacks = {"x-meta": {"owner": "team-a"}, "done": {"{$url}": {"post": request() | responses}}}
    document = event(tmp_path, described(paths={"/n": {"post": {"callbacks": callbacks}}}))
    assert "Unsubscribed." in document.sections[0].body
