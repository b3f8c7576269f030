"""OpenAPI descriptions: the bodies of error responses."""

from pathlib import Path
from typing import Any

import pytest

from ingestion.sources.openapi.operations import Operation
from ingestion.sources.openapi.versions import OpenApi3
from schemas.document import SourceDocument
from tests.openapi_descriptions import Json, one, read, rows_of, small, write


def failing(*bodies: Json, **components: Any) -> Json:
    """A description with one operation per error body."""
    responses = [
        {"200": {"description": "Done."},
         "404": {"description": "No.", "content": {"application/json": {"schema": body}}}}
        for body in bodies
    ]  # fmt: skip
    paths = {f"/plays{n}": {"get": {"responses": each}} for n, each in enumerate(responses)}
    return small(paths=paths, components={"schemas": components})


PROBLEM: Json = {
    "properties": {
        "fault": {"type": "string", "description": "Kind of fault.", "example": "HALL.17"},
        "hint": {"type": "string", "example": "Curtain is stuck."},
    }
}


def test_error_body_that_operations_share_is_described_once(tmp_path: Path) -> None:
    shared = {"$ref": "#/components/schemas/Fault"}
    *operations, errors = read(write(tmp_path / "a.json", failing(shared, shared, Fault=PROBLEM)))
    assert isinstance(errors, SourceDocument)
    assert (errors.id, errors.title) == ("error-responses", "Error responses")
    (section,) = errors.sections
    assert (section.kind, section.heading) == ("prose", ("Fault",))
    assert "errors with the status: `404`" in section.body
    assert "- APIs: GET /plays0; GET /plays1" in section.body
    assert rows_of(errors, "prose") == [
        ["fault", "string", "", "Kind of fault.", "HALL.17"],
        ["hint", "string", "", "", "Curtain is stuck."],
    ]
    assert all("HALL.17" not in str(operation) for operation in operations)


def test_operations_that_share_an_error_body_are_named_only_if_they_are_few(tmp_path: Path) -> None:
    *_, errors = read(write(tmp_path / "api.json", failing(*[PROBLEM] * 6)))
    assert isinstance(errors, SourceDocument)
    assert "HALL.17" in errors.sections[0].body
    assert "/plays" not in errors.sections[0].body


def test_error_body_of_one_operation_is_a_section_of_its_document(tmp_path: Path) -> None:
    section = one(tmp_path, failing(PROBLEM)).sections[-1]
    assert (section.kind, section.heading) == ("prose", ("Error responses",))
    assert "Curtain is stuck." in section.body


@pytest.mark.parametrize(
    "body",
    [
        {"type": "string"},
        {"$ref": "#/components/schemas/Missing"},
        {"properties": {"error": {"enum": ["sold_out", "late"]}}},
    ],
    ids=["no fields", "unresolvable", "codes in the table of errors"],
)
def test_error_body_that_adds_nothing_is_left_out(tmp_path: Path, body: Json) -> None:
    found = read(write(tmp_path / "api.json", failing(body)))
    assert all("Error responses" not in str(each) for each in found)


def test_each_operation_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_operation, paths = OpenApi3.read_operation, list[str]()

    def count(reader: OpenApi3, path_operation: Any, parameters: Any) -> Operation:
        paths.append(path_operation.path)
        return read_operation(reader, path_operation, parameters)

    monkeypatch.setattr(OpenApi3, "read_operation", count)
    read(write(tmp_path / "api.json", failing(PROBLEM, PROBLEM)))
    assert paths == ["/plays0", "/plays1"]
