"""OpenAPI and Swagger descriptions: schemas of bodies, their examples and responses."""

from pathlib import Path
from typing import Any

import pytest

from tests.openapi_descriptions import (
    Json,
    answer_rows,
    answering,
    body_of,
    one,
    rows_of,
    small,
    swagger_2,
)


@pytest.mark.parametrize(
    ("required", "expected"),
    [(["a"], ["Yes", "No"]), ([], ["", ""])],
    ids=["stated", "not stated"],
)
def test_fields_of_a_response_are_required_if_the_schema_says_so(
    tmp_path: Path, required: list[str], expected: list[str]
) -> None:
    schema = {"required": required, "properties": {"a": {}, "b": {}}}
    assert [row[2] for row in answer_rows(tmp_path, schema)] == expected


def test_fields_of_a_request_are_optional_by_default(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    query = {"parameters": [{"name": "q", "in": "query", "schema": {}}]}
    document = one(tmp_path, small(paths={"/plays": {"post": body | query}}))
    assert [row[2] for row in rows_of(document, "request_parameters")] == ["No", "No"]


@pytest.mark.parametrize(("required", "expected"), [(True, "Yes"), (False, "No"), (None, "No")])
@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "array", "items": {}}])
def test_body_is_optional_unless_the_description_says_otherwise(
    tmp_path: Path, schema: Json, required: bool | None, expected: str
) -> None:
    stated = {} if required is None else {"required": required}
    body = {"content": {"application/json": {"schema": schema}}} | stated
    document = one(tmp_path, small(paths={"/plays": {"post": {"requestBody": body}}}))
    assert [row[2] for row in rows_of(document, "request_parameters")] == [expected]
    parameter = {"name": "play", "in": "body", "schema": schema} | stated
    operation = {"post": {"parameters": [parameter]}}
    old = {"swagger": "2.0", "info": {"title": "Hall"}, "paths": {"/plays": operation}}
    document = one(tmp_path, old)
    assert [row[2] for row in rows_of(document, "request_parameters")] == [expected]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, ["string", "may be null."]),
        ({"type": "string", "nullable": True}, ["string", "may be null."]),
        ({"anyOf": [{"type": "integer", "minimum": 2}, {"type": "null"}]}, ["integer", "Range: ≥ 2; may be null."]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["string | integer", ""]),
        ({"oneOf": [{"const": "a", "title": "First"}, {"const": "b"}]}, ["string", "Values: `a` First; `b`"]),
        ({"enum": ["a"], "x-enum-descriptions": ["First"], "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, ["string", "Values: `a` First; `b`"]),
        ({"type": "integer", "format": "int64", "exclusiveMinimum": 0}, ["integer (int64)", "Range: > 0."]),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, ["number", "Range: > 0."]),
        ({"type": "string", "format": "binary"}, ["file", ""]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, ["array<array<integer>>", ""]),
        ({"type": "string", "pattern": "^a|b$"}, ["string", "Pattern: `^a|b$`."]),
        ({"enum": [1, 2]}, ["integer", "Values: `1`; `2`"]),
        ({"const": "x"}, ["string", "Values: `x`"]),
        ({"type": "object", "additionalProperties": True}, ["object", ""]),
        (True, ["any", ""]), ({}, ["any", ""]), ({"description": "Text"}, ["any", "Text"]),
        ({"type": "string", "description": "一句话。", "default": ""}, ["string", "一句话。Default: ``."]),
    ],
)  # fmt: skip
def test_schema_is_described_in_table_cells(
    tmp_path: Path, schema: Any, expected: list[str]
) -> None:
    content = answering({"type": "object", "properties": {"x": schema}})
    (row,) = rows_of(one(tmp_path, content, language="en"), "response_parameters")
    assert [row[1], row[3]] == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ["*"]),
        ({"type": "array", "items": {"properties": {"a": {}}}}, ["[]", "[].a"]),
        ({"type": "array", "items": {"type": "string"}}, ["[]"]),
        ({"type": "string"}, ["response"]),
        ({"oneOf": [{"title": "A", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
         ["(A)", "(A).a", "(object 2)", "(object 2).b"]),
        ({"properties": {"m": {"type": "array", "items": {"oneOf": [
            {"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}}}},
         ["m", "m[] (A)", "m[] (A).a", "m[] (B)", "m[] (B).b"]),
        ({"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"c": {}}}], "properties": {"d": {}}},
         ["a", "c", "d"]),
        ({"allOf": [{"oneOf": [{"properties": {"a": {}}}]}, {"anyOf": [{"properties": {"c": {}}}]}]}, ["a", "c"]),
        ({"properties": {"grid": {"type": "array", "items": {"type": "array", "items": {
            "properties": {"cell": {}}}}}}}, ["grid", "grid[][].cell"]),
        ({"properties": {"secret": {"writeOnly": True}, "shown": {"readOnly": True}}}, ["shown"]),
    ],
)  # fmt: skip
def test_row_names(tmp_path: Path, schema: Any, expected: list[str]) -> None:
    parts: Json = {"A": {"properties": {"a": {}}}, "B": {"properties": {"b": {}}}}
    assert [row[0] for row in answer_rows(tmp_path, schema, **parts)] == expected


def test_rows_of_alternatives_are_marked(tmp_path: Path) -> None:
    described = {"description": "By country.", "properties": {"country": {}}}
    schema = {"oneOf": [described, {"properties": {"number": {"description": "Which."}}}]}
    assert [row[3] for row in answer_rows(tmp_path, schema)] == [
        "One of the alternatives. By country.", "", "One of the alternatives.", "Which.",
    ]  # fmt: skip


def test_siblings_of_a_reference_override_its_target(tmp_path: Path) -> None:
    schema = {"properties": {"a": {"$ref": "#/components/schemas/A", "description": "Here."}}}
    (row, _) = answer_rows(tmp_path, schema, A={"description": "There.", "properties": {"b": {}}})
    assert row[3] == "Here."


def test_media_types_with_different_schemas_are_separate(tmp_path: Path) -> None:
    def content(*names: str) -> Json:
        return {name: {"schema": {"properties": {name[-4:]: {}}}} for name in names}

    operation = {
        "requestBody": {"content": content("application/json", "multipart/form-data")},
        "responses": {"200": {"content": content("application/json", "text/event-stream"),
                              "headers": {"X-Left": {"schema": {"type": "integer"}}}}},
    }  # fmt: skip
    document = one(tmp_path, small(operation))
    assert [row[-1] for row in rows_of(document, "request_parameters")] == [
        "body (application/json)", "formData (multipart/form-data)",
    ]  # fmt: skip
    assert [row[-1] for row in rows_of(document, "response_parameters")] == [
        "application/json", "text/event-stream", "header",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("string", "application/x-www-form-urlencoded"), ("file", "multipart/form-data")],
)
def test_form_that_declares_no_media_type_has_one(tmp_path: Path, kind: str, expected: str) -> None:
    description = swagger_2()
    del description["consumes"]
    fields = [{"name": name, "in": "formData", "type": kind} for name in ("a", "b")]
    description["paths"]["/plays/{play}/tickets"]["post"]["parameters"] = fields
    rows = rows_of(one(tmp_path, description), "request_headers")
    assert ["Content-Type", "string", "Yes", "", expected] in rows


def test_examples_may_be_strings(tmp_path: Path) -> None:
    media = {"text/event-stream": {"examples": {"a": {"summary": "Stream", "value": "data: 1\n```\n"},
                                                "b": {"value": {"n": 2}}}}}  # fmt: skip
    body = body_of(
        one(tmp_path, small({"responses": {"200": {"content": media}}})), "response_parameters"
    )
    assert "Response example: Stream\n\n````\ndata: 1\n```\n````" in body
    assert '```json\n{\n  "n": 2\n}\n```' in body


@pytest.mark.parametrize(
    ("examples", "expected"),
    [
        (["x" * 300, "short"], "short"),
        (["x" * 300, "y" * 301], "x" * 300),
        (["x" * 700], "x" * 600 + "…"),
    ],
)
def test_long_example_is_shown_if_there_is_no_short_one(
    tmp_path: Path, examples: list[str], expected: str
) -> None:
    schema = {"properties": {"script": {"type": "string", "examples": examples}}}
    ((*_, example),) = answer_rows(tmp_path, schema)
    assert example == expected


def test_error_examples_of_success_responses_are_error_codes(tmp_path: Path) -> None:
    examples = {"ok": {"value": {"ret_code": 0}},
                "Error_12": {"summary": "Denied", "value": {"ret_code": 12, "msg": "Not yours"}}}  # fmt: skip
    content = {"application/json": {"examples": examples}}
    document = one(tmp_path, small({"responses": {"200": {"content": content}}}))
    assert rows_of(document, "error_codes") == [["12", "Not yours", "", ""]]
    assert "Not yours" not in body_of(document, "response_parameters")


def test_status_of_success_has_a_label(tmp_path: Path) -> None:
    responses = {"201": {"description": "Created"}, "404": {"description": "No play"}}
    document = one(tmp_path, small({"responses": responses}))
    assert body_of(document, "response_parameters") == "Success status code: `201` Created"


def test_status_in_the_list_of_its_response_keeps_its_explanation(tmp_path: Path) -> None:
    listed = "- `400`: Invalid input\n- `too_long`: The name is too long"
    document = one(tmp_path, small({"responses": {"400": {"description": listed}}}))
    (status, code) = rows_of(document, "error_codes")
    assert status[0] == "400"
    assert "Invalid input; `too_long`" in status
    assert code[0] == "too_long"


def test_default_response_is_an_error_if_there_are_others(tmp_path: Path) -> None:
    schema = {"properties": {"reason": {"type": "string"}}}
    default = {
        "description": "Unexpected error",
        "content": {"application/json": {"schema": schema}},
    }
    several = one(
        tmp_path, small({"responses": {"401": {"description": "No."}, "default": default}})
    )
    assert rows_of(several, "error_codes")[-1] == ["default", "", "Unexpected error", ""]
    assert not any(section.kind == "response_parameters" for section in several.sections)
    only = one(tmp_path, small({"responses": {"default": default}}))
    assert [row[0] for row in rows_of(only, "response_parameters")] == ["reason"]
