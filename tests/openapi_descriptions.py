"""Creates, reads and inspects OpenAPI and Swagger descriptions for tests."""

import json
import time
from pathlib import Path
from typing import Any

from ingestion.sources.registry import FileResult, read_source
from ingestion.text.markdown_blocks import parse_table
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import OpenApiSourceConfig, SourceLimits
from tests.conftest import SHARED_DATA
from tests.download_server import LOCAL

DATA = SHARED_DATA / "openapi"
Json = dict[str, Any]

DEFAULT = SourceLimits()
ON_LOOPBACK = SourceLimits(private_hosts=LOCAL)

TICKET: Json = {
    "type": "object",
    "required": ["id", "seat"],
    "properties": {
        "id": {"type": "string", "format": "uuid", "readOnly": True, "description": "Ticket id."},
        "seat": {"$ref": "#/SCHEMAS/Seat"},
        "guests": {"type": "array", "maxItems": 4, "items": {"$ref": "#/SCHEMAS/Guest"}},
        "labels": {"type": "array", "items": {"type": "string"}},
        "tier": {"type": "string", "enum": ["gold", "stalls"], "default": "stalls"},
        "old_code": {"type": "string", "deprecated": True},
        "note": {"type": "string", "description": "Free text\n| with a bar, <b>bold</b>.", "maxLength": 80},
    },
}  # fmt: skip
SCHEMAS: Json = {
    "Ticket": TICKET,
    "Seat": {
        "type": "object",
        "description": "Where one sits.",
        "required": ["row"],
        "properties": {
            "row": {"type": "integer", "minimum": 1, "maximum": 40, "example": 7},
            "door": {"allOf": [{"$ref": "#/SCHEMAS/Door"}, {"description": "The nearest door."}]},
        },
    },
    "Door": {"type": "object", "properties": {"name": {"type": "string"}}},
    "Guest": {"type": "object", "properties": {"friend": {"$ref": "#/SCHEMAS/Guest"}}},
    "Problem": {
        "type": "object",
        "properties": {"code": {"type": "string", "enum": ["sold_out", "hall_closed"]}},
    },
}


def refs(value: Any, to: str) -> Any:
    """Replace `#/SCHEMAS/` by the location of schemas in this version."""
    return json.loads(json.dumps(value).replace("#/SCHEMAS/", to))


def operation_fields() -> Json:
    return {
        "operationId": "sellTicket",
        "summary": "Sell a ticket",
        "description": "Sells one ticket for a play.",
        "tags": ["Box office", "Sales"],
        "externalDocs": {"url": "https://hall.example.com/sell"},
    }


def problem_text() -> str:
    return "- `sold_out`: no seat is left.\n- `late_sale`: the play has begun."


def openapi_3(version: str) -> Json:
    body = {"schema": {"$ref": "#/SCHEMAS/Ticket"}, "example": {"seat": {"row": 3}}}
    problem = {"schema": {"$ref": "#/SCHEMAS/Problem"},
               "example": {"code": "sold_out", "message": "No seat."}}  # fmt: skip
    description = {
        "openapi": version,
        "info": {"title": "Hall", "version": "1"},
        "servers": [{"url": "https://{host}/v4/", "variables": {"host": {"default": "hall.example.com"}}}],
        "security": [{"hall": ["tickets:sell"]}],
        "paths": {
            "/plays/{play}/tickets": {
                "parameters": [{"name": "lang", "in": "query", "schema": {"type": "string"}}],
                "post": operation_fields() | {
                    "parameters": [
                        {"name": "play", "in": "path", "required": True, "schema": {"type": "string"}},
                        {"name": "X-Till", "in": "header", "required": True, "description": "Till.",
                         "schema": {"type": "integer"}},
                        {"name": "dry_run", "in": "query", "schema": {"type": "boolean", "default": False}},
                    ],
                    "requestBody": {"required": True, "description": "The ticket.",
                                    "content": {"application/json": body}},
                    "responses": {
                        "201": {"description": "Sold.", "content": {
                            "application/json": {"schema": {"$ref": "#/SCHEMAS/Ticket"},
                                                 "example": {"id": "t-1"}}}},
                        "409": {"description": problem_text(), "content": {"application/json": problem}},
                    },
                },
            }
        },
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"hall": {"type": "oauth2", "flows": {"clientCredentials": {
                "tokenUrl": "https://hall.example.com/token",
                "scopes": {"tickets:sell": "Sell tickets"}}}}},
        },
    }  # fmt: skip
    found: Json = refs(description, "#/components/schemas/")
    return found


def swagger_2() -> Json:
    description = {
        "swagger": "2.0",
        "info": {"title": "Hall", "version": "1"},
        "host": "hall.example.com",
        "basePath": "/v4",
        "schemes": ["https"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "security": [{"hall": ["tickets:sell"]}],
        "paths": {
            "/plays/{play}/tickets": {
                "parameters": [{"name": "lang", "in": "query", "type": "string"}],
                "post": operation_fields() | {
                    "parameters": [
                        {"name": "play", "in": "path", "required": True, "type": "string"},
                        {"name": "X-Till", "in": "header", "required": True, "description": "Till.",
                         "type": "integer"},
                        {"name": "dry_run", "in": "query", "type": "boolean", "default": False},
                        {"name": "ticket", "in": "body", "required": True, "description": "The ticket.",
                         "schema": {"$ref": "#/SCHEMAS/Ticket"}, "x-example": {"seat": {"row": 3}}},
                    ],
                    "responses": {
                        "201": {"description": "Sold.", "schema": {"$ref": "#/SCHEMAS/Ticket"},
                                "examples": {"application/json": {"id": "t-1"}}},
                        "409": {"description": problem_text(), "schema": {"$ref": "#/SCHEMAS/Problem"},
                                "examples": {"application/json": {"code": "sold_out", "message": "No seat."}}},
                    },
                },
            }
        },
        "definitions": SCHEMAS,
        "securityDefinitions": {"hall": {"type": "oauth2", "flow": "application",
                                         "tokenUrl": "https://hall.example.com/token",
                                         "scopes": {"tickets:sell": "Sell tickets"}}},
    }  # fmt: skip
    found: Json = refs(description, "#/definitions/")
    return found


def small(operation: Json | None = None, **fields: Any) -> Json:
    """A description with one operation, `GET /plays`."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hall"},
        "paths": {"/plays": {"get": operation or {}}},
    } | fields


def answering(schema: Any, **components: Any) -> Json:
    """A description with one operation whose response has `schema`."""
    responses = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    return small({"responses": responses}, components={"schemas": components})


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, limits: SourceLimits = DEFAULT, **fields: Any) -> list[FileResult]:
    source = OpenApiSourceConfig(name="docs", kind="openapi", path=path, **fields)
    started = time.process_time()  # CPU time, independent of the load of the machine
    found = list(read_source(source, limits))
    assert time.process_time() - started < 40  # the largest description takes about 10 seconds
    for each in found:
        if isinstance(each, SourceError):
            assert "\n" not in str(each)
            assert str(path.parent) not in str(each)
    return found


def refusal_of(path: Path) -> str:
    """The reason the description was refused; empty if it was read."""
    try:
        read(path)
    except SourceError as error:
        return str(error)
    return ""


def one(tmp_path: Path, content: object, **fields: Any) -> SourceDocument:
    (found,) = read(write(tmp_path / "api.json", content), **fields)
    assert isinstance(found, SourceDocument), found
    return found


def refused(
    tmp_path: Path, content: object, limits: SourceLimits = DEFAULT, name: str = "api.json"
) -> str:
    """The reason the only operation, or the description, was refused."""
    try:
        (found,) = read(write(tmp_path / name, content), limits)
    except SourceError as error:
        found = error
    assert isinstance(found, SourceError), found
    assert "\n" not in str(found)
    assert str(tmp_path) not in str(found)
    return str(found)


def body_of(document: SourceDocument, kind: str) -> str:
    return next((section.body for section in document.sections if section.kind == kind), "")


def rows_of(document: SourceDocument, kind: str) -> list[list[str]]:
    """Return the rows of a section's table. If it has no column "Required", its cells are empty."""
    table = parse_table(body_of(document, kind))
    rows = table[1:]
    is_stated = not table or table[0][2:3] not in (["Description"], ["说明"])
    return rows if is_stated else [[*row[:2], "", *row[2:]] for row in rows]


def answer_rows(tmp_path: Path, schema: Any, **components: Any) -> list[list[str]]:
    return rows_of(one(tmp_path, answering(schema, **components)), "response_parameters")
