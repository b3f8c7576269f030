"""OpenAPI and Swagger descriptions: the documents of operations."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestion.sources.registry import FileResult, read_source
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import OpenApiSourceConfig, SourceLimits
from tests.download_server import Serve, answer, server
from tests.openapi_descriptions import (
    ON_LOOPBACK,
    Json,
    answering,
    body_of,
    one,
    openapi_3,
    read,
    rows_of,
    small,
    swagger_2,
    write,
)

# --- one operation, one document


@pytest.mark.parametrize("make", [swagger_2, lambda: openapi_3("3.0.3"), lambda: openapi_3("3.1.0")], ids=["2.0", "3.0", "3.1"])  # fmt: skip
@pytest.mark.parametrize(
    "dump", [json.dumps, lambda d: yaml.safe_dump(d, sort_keys=False)], ids=["json", "yaml"]
)
def test_operation_becomes_a_document(
    tmp_path: Path, make: Callable[[], Json], dump: Callable[[Json], str]
) -> None:
    document = one(tmp_path, dump(make()))
    assert document.id == document.api_id == "sellTicket"
    assert document.title == document.api_name == "Sell a ticket"
    assert document.api_url == "/v4/plays/{play}/tickets"
    assert document.service_id == "Box office"
    assert (document.language, document.source) == ("en", "docs")
    assert document.page_url == "https://hall.example.com/sell"
    assert [section.kind for section in document.sections] == [
        "request_headers", "request_url", "public_parameters", "request_parameters",
        "response_parameters", "error_codes", "permission_package",
    ]  # fmt: skip
    assert rows_of(document, "request_headers") == [
        [
            "Authorization",
            "string",
            "Yes",
            "oauth2, https://hall.example.com/token",
            "Bearer {token}",
        ],
        ["Content-Type", "string", "Yes", "", "application/json"],
        ["X-Till", "integer", "Yes", "Till.", ""],
    ]
    url = body_of(document, "request_url")
    for word in (
        "Sells one ticket",
        "`POST`",
        "`/v4/plays/{play}/tickets`",
        "`https://hall.example.com/v4",
    ):
        assert word in url
    assert rows_of(document, "public_parameters") == [["lang", "string", "No", "", "", "query"]]
    assert rows_of(document, "request_parameters") == [
        ["play", "string", "Yes", "", "", "path"],
        ["dry_run", "boolean", "No", "Default: `false`.", "", "query"],
        ["seat", "object", "Yes", "Where one sits.", "", "body"],
        ["seat.row", "integer", "Yes", "Range: 1–40.", "7", "body"],
        ["seat.door", "object", "No", "The nearest door.", "", "body"],
        ["seat.door.name", "string", "No", "", "", "body"],
        ["guests", "array<object>", "No", "Items: ≤ 4.", "", "body"],
        ["guests[].friend", "object", "No", "…see above", "", "body"],
        ["labels", "array<string>", "No", "", "", "body"],
        ["tier", "string", "No", "Default: `stalls`. Values: `gold`; `stalls`", "", "body"],
        ["old_code", "string", "No", "(Deprecated.)", "", "body"],
        ["note", "string", "No", "Free text | with a bar, <b>bold</b>. Length: ≤ 80.", "", "body"],
    ]
    assert '"row": 3' in body_of(document, "request_parameters")
    answered = rows_of(document, "response_parameters")
    assert answered[0] == ["id", "string (uuid)", "Yes", "Ticket id.", ""]
    assert '"id": "t-1"' in body_of(document, "response_parameters")
    assert rows_of(document, "error_codes") == [
        ["409", "Conflict", "`sold_out`, `late_sale`", ""],
        ["sold_out", "No seat.", "HTTP 409: no seat is left.", ""],
        ["late_sale", "", "HTTP 409: the play has begun.", ""],
        ["hall_closed", "", "HTTP 409", ""],
    ]
    assert rows_of(document, "permission_package") == [["tickets:sell", "Sell tickets"]]
    assert "- Authentication: hall (oauth2, https://hall.example.com/token)" in url


def test_all_versions_yield_the_same_document(tmp_path: Path) -> None:
    two, three, later = (
        one(tmp_path, each).model_dump_json().replace("https://hall.example.com/v4/", "https://hall.example.com/v4")
        for each in (swagger_2(), openapi_3("3.0.0"), openapi_3("3.1.1"))
    )  # fmt: skip
    assert two == three == later


def test_reading_twice_yields_equal_documents(tmp_path: Path) -> None:
    assert one(tmp_path, swagger_2()) == one(tmp_path, swagger_2())


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("https://x.y/{operationId}", "https://x.y/sellTicket"),
        (
            "https://x.y/#/{tag}/{method}/{path}",
            "https://x.y/#/Box%20office/POST/plays/%7Bplay%7D/tickets",
        ),
        ("https://x.y/{apiId}?{serviceId}", "https://x.y/sellTicket?Box office"),
        ("https://x.y/{nothing}", "https://hall.example.com/sell"),
    ],
)
def test_operation_page_url(tmp_path: Path, template: str, expected: str) -> None:
    assert one(tmp_path, swagger_2(), page_url=template).page_url == expected


def test_malformed_page_url_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="page_url = "):
        one(tmp_path, swagger_2(), page_url="https://x.y/{path")


def test_operation_without_details_has_a_request_url_section(tmp_path: Path) -> None:
    document = one(tmp_path, small({}))
    assert (document.id, document.title) == ("GET /plays", "GET /plays")
    assert (document.api_url, document.service_id) == ("/plays", "Hall")
    assert [section.kind for section in document.sections] == ["request_url"]


def test_descriptions_of_the_api_and_of_its_tags_become_a_document(tmp_path: Path) -> None:
    limits = "Each key may send 20 requests per second. More requests are answered with status 429."
    description = small(
        {"operationId": "overview", "tags": ["plays"]},
        info={"title": "Hall", "description": f"Sells tickets.\n\n## Limits\n\n{limits}"},
        tags=[{"name": "plays", "description": limits}, {"name": "seats", "description": "Seats"}],
        externalDocs={"url": "https://hall.example.com/docs"},
    )
    overview, operation = read(write(tmp_path / "a.json", description))
    assert isinstance(overview, SourceDocument)
    assert (overview.id, overview.title) == ("overview", "Hall")
    assert overview.page_url == "https://hall.example.com/docs"
    assert [(section.heading, section.body) for section in overview.sections] == [
        ((), "Sells tickets."),
        (("Limits",), limits),
        (("plays",), limits),
    ]
    assert isinstance(operation, SourceDocument)
    assert operation.id == "GET /plays"


def test_duplicate_operation_ids_are_made_unique(tmp_path: Path) -> None:
    item = {
        "get": {"operationId": "a"},
        "post": {"operationId": "a"},
        "put": {"operationId": "PUT /p"},
    }
    found = read(
        write(tmp_path / "a.json", small(paths={"/p": item, "/q": {"get": {"operationId": "a"}}}))
    )
    assert [each.id for each in found if isinstance(each, SourceDocument)] == [
        "a", "POST /p", "PUT /p", "GET /q",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "texts", "expected"),
    [(None, "查询剧目列表", "zh"), (None, "List the plays", "en"), ("zh", "List the plays", "zh")],
)
def test_language_is_detected_from_the_description(
    tmp_path: Path, language: str | None, texts: str, expected: str
) -> None:
    assert one(tmp_path, small({"summary": texts}), language=language).language == expected


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        (["https://a.b/v1"], "/v1/plays"), (["https://a.b/v1/"], "/v1/plays"), (["/v2"], "/v2/plays"),
        (["https://a.b"], "/plays"), (["https://a.b/", "https://c.d/v9"], "/plays"), ([], "/plays"),
        (["https://a.b/{version}"], "/plays"), (["http://[/v1"], "/plays"), (["v1"], "/plays"),
    ],
)  # fmt: skip
def test_url_begins_with_the_path_of_the_first_server(
    tmp_path: Path, servers: list[str], url: str
) -> None:
    document = one(tmp_path, small(servers=[{"url": each} for each in servers]))
    assert document.api_url == url
    assert all(f"`{each}`" in body_of(document, "request_url") for each in servers)


def test_deprecated_operations_are_marked(tmp_path: Path) -> None:
    document = one(tmp_path, small({"deprecated": True}))
    assert document.metadata == {"deprecated": "true"}
    assert "deprecated" in body_of(document, "request_url")


def test_parameters_shared_by_most_operations_are_public(tmp_path: Path) -> None:
    def operation(*names: str) -> Json:
        return {"parameters": [{"$ref": f"#/components/parameters/{name}"} for name in names]}

    common = {
        n: {"name": n, "in": "query", "schema": {"type": "string"}} for n in ("trace", "rare")
    }
    paths = {
        "/a": {"get": operation("trace", "rare")},
        "/b": {"get": operation("trace")},
        "/c": {"get": {}},
    }
    found = read(write(tmp_path / "a.json", small(paths=paths, components={"parameters": common})))
    first = found[0]
    assert isinstance(first, SourceDocument)
    assert [row[0] for row in rows_of(first, "public_parameters")] == ["trace"]
    assert [row[0] for row in rows_of(first, "request_parameters")] == ["rare"]


def test_operation_parameter_overrides_path_parameter(tmp_path: Path) -> None:
    def lang(text: str) -> Json:
        return {"name": "lang", "in": "query", "description": text, "schema": {"type": "string"}}

    item = {"parameters": [lang("of all")], "get": {"parameters": [lang("own")]}}
    document = one(tmp_path, small(paths={"/plays": item}))
    assert [row[3] for row in rows_of(document, "request_parameters")] == ["own"]
    assert not body_of(document, "public_parameters")


def test_a_description_beside_a_reference_replaces_that_of_the_target(tmp_path: Path) -> None:
    components = {
        "responses": {"Conflict": {"description": "Conflict"}},
        "parameters": {"At": {"name": "at", "in": "query", "description": "A time."}},
    }
    operation = {
        "parameters": [{"$ref": "#/components/parameters/At", "description": "When it starts."}],
        "responses": {
            "409": {"$ref": "#/components/responses/Conflict", "description": "Seat is taken."},
            "412": {"$ref": "#/components/responses/Conflict"},
        },
    }
    document = one(tmp_path, small(operation, components=components))
    assert [row[2] for row in rows_of(document, "error_codes")] == ["Seat is taken.", "Conflict"]
    assert "When it starts." in body_of(document, "request_parameters")


@pytest.mark.parametrize(
    ("summary", "description", "title"),
    [
        ("/plays/", "List plays. Sorted by date.", "List plays"),
        ("plays", "查询剧目。按日期排序。", "查询剧目"),
        ("plays", "", "plays"),
        ("All plays", "List plays.", "All plays"),
    ],
)
def test_summary_that_repeats_the_path_is_replaced_by_the_description(
    tmp_path: Path, summary: str, description: str, title: str
) -> None:
    operation = {"summary": summary, "description": description}
    assert one(tmp_path, small(operation)).title == title


@pytest.mark.parametrize("description", ["", "List numbers", "List  numbers."])
@pytest.mark.parametrize("is_deprecated", [False, True])
def test_description_that_repeats_the_name(
    tmp_path: Path, description: str, is_deprecated: bool
) -> None:
    operation = {"summary": "List numbers", "description": description, "deprecated": is_deprecated}
    first_line = body_of(one(tmp_path, small(operation)), "request_url").splitlines()[0].strip()
    assert first_line == ("**This API is deprecated.**" if is_deprecated else "List numbers")


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ([], []), ([{}], []), ("x", []), ([{"missing": []}], []), ([{"key": []}], []),
        ([{"key": ["a", "b", 3]}], ["a", "b"]), ([{"key": ["a"]}, {"bearer": []}], ["a"]),
    ],
)  # fmt: skip
def test_scopes_become_permissions(tmp_path: Path, security: Any, expected: list[str]) -> None:
    document = one(tmp_path, secured(security))
    rows = rows_of(document, "permission_package")
    assert [row[0] for row in rows] == expected
    assert any("One of these" in row[1] for row in rows) is (len(security) == 2)


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ([], ""), ([{}], ""), ("x", ""), ([{"missing": []}], "missing"),
        ([{"key": []}], "key (apiKey: query `k`)"), ([{"bearer": ["a"]}], "bearer (HTTP bearer)"),
        ([{"key": [], "bearer": []}], "key (apiKey: query `k`) + bearer (HTTP bearer)"),
        ([{"key": []}, {"bearer": []}], "One of these is enough: key (apiKey: query `k`) / bearer (HTTP bearer)"),
        ([{}, {"bearer": []}], "bearer (HTTP bearer) (may be called without credentials too)"),
        ([{"mutual": []}], "mutual (mutualTLS. Ask us for a certificate.)"),
    ],
)  # fmt: skip
def test_security_schemes_are_stated_below_the_url(
    tmp_path: Path, security: Any, expected: str
) -> None:
    lines = body_of(one(tmp_path, secured(security)), "request_url").splitlines()
    label = "- Authentication: "
    assert [line.removeprefix(label) for line in lines if line.startswith(label)] == (
        [expected] if expected else []
    )


def test_permissions_state_alternatives_without_names_of_schemes(tmp_path: Path) -> None:
    schemes = {
        "secretKey": {"type": "http", "scheme": "bearer"},
        "appKey": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "oauth": {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": "https://a.b/token",
                    "scopes": {"sell": "Sell tickets", "read": "read"},
                }
            },
        },
    }
    security = [{"oauth": ["sell", "read"]}, {"secretKey": []}, {"appKey": []}]
    content = small({"security": security}, components={"securitySchemes": schemes})
    note = "One of these is enough: sell + read / HTTP bearer / `X-Key`"
    assert rows_of(one(tmp_path, content), "permission_package") == [
        ["sell", f"Sell tickets. {note}"],
        ["read", note],
    ]
    chinese = rows_of(one(tmp_path, content, language="zh"), "permission_package")
    assert chinese[1] == ["read", "满足其中一种即可：sell + read / HTTP bearer / `X-Key`"]


@pytest.mark.parametrize(
    ("operation", "name", "shown"),
    [
        ({"operationId": "listUserIDs"}, "List user IDs", "`listUserIDs`"),
        ({"operationId": "FetchHTTPLogs"}, "Fetch HTTP logs", "`FetchHTTPLogs`"),
        ({"operationId": "fetch"}, "fetch", ""),
        ({"operationId": "fetch_plays"}, "fetch_plays", ""),
        ({"operationId": "getOAuthToken"}, "Get OAuth token", "`getOAuthToken`"),
        ({"operationId": "listPlays", "summary": "All plays"}, "All plays", "`listPlays`"),
        ({"operationId": "listPlays", "summary": "listPlays"}, "List plays", "`listPlays`"),
        ({}, "GET /plays", ""),
    ],
)
def test_operation_id_is_shown_as_words_and_in_the_text(
    tmp_path: Path, operation: Json, name: str, shown: str
) -> None:
    document = one(tmp_path, small(operation))
    assert document.title == document.api_name == name
    assert document.id == operation.get("operationId", "GET /plays")
    lines = body_of(document, "request_url").splitlines()
    found = [line for line in lines if line.startswith("- operationId: ")]
    assert found == ([f"- operationId: {shown}"] if shown else [])


def test_chinese_descriptions_have_chinese_punctuation(tmp_path: Path) -> None:
    fields = {
        "a": {"type": "string", "description": "订单号", "maxLength": 32, "default": "x"},
        "b": {"type": "string", "description": "状态。", "enum": ["1", "2"], "deprecated": True},
        "c": {"type": "string", "description": "Order id", "maxLength": 32},
    }
    content = answering({"type": "object", "properties": fields})
    rows = rows_of(one(tmp_path, content, language="zh"), "response_parameters")
    assert [row[3] for row in rows] == [
        "订单号。默认值：`x`；长度：≤ 32。",
        "（已废弃）状态。可选值：`1`、`2`",
        "Order id. 长度：≤ 32。",
    ]


def secured(security: Any) -> Json:
    schemes = {
        "key": {"type": "apiKey", "in": "query", "name": "k", "description": "Your key."},
        "bearer": {"type": "http", "scheme": "bearer"},
        "mutual": {"type": "mutualTLS", "description": "Ask us for a certificate."},
    }
    return small({"security": security}, components={"securitySchemes": schemes})


def test_alternative_credentials_in_one_header_have_a_row_each(tmp_path: Path) -> None:
    schemes = {
        "login": {"type": "http", "scheme": "basic"},
        "token": {"type": "http", "scheme": "bearer"},
        "app": {"type": "oauth2"},
    }
    security: list[dict[str, list[str]]] = [{name: []} for name in schemes]
    document = one(tmp_path, small({"security": security}, components={"securitySchemes": schemes}))
    assert rows_of(document, "request_headers") == [
        ["Authorization", "string", "No", "HTTP basic", "Basic {credentials}"],
        ["Authorization", "string", "No", "HTTP bearer", "Bearer {token}"],
    ]


# --- several documents


def test_references_are_resolved_across_files(tmp_path: Path) -> None:
    write(
        tmp_path / "parts" / "paths.yaml",
        "play:\n  get:\n    responses:\n      200: {$ref: 'answers.json#/a'}\n",
    )
    write(tmp_path / "parts" / "answers.json", {"a": {"description": "All.", "content": {
        "application/json": {"schema": {"$ref": "../schemas.yaml#/Play"}}}}})  # fmt: skip
    write(
        tmp_path / "schemas.yaml",
        "Play: {properties: {next: {$ref: '#/Play'}, on: {type: string}}}",
    )
    content = "openapi: 3.0.1\npaths: {/play: {$ref: 'parts/paths.yaml#/play'}}"
    document = one(tmp_path, content)
    assert [row[0] for row in rows_of(document, "response_parameters")] == ["next", "on"]


@pytest.mark.parametrize(
    "reference",
    ["../outside.yaml#/a", "link.yaml#/a", "file:///etc/passwd", "/etc/passwd", "http://example.com/a.yaml",
     "//example.com/a", "missing.yaml", "#/nowhere", "#nowhere", "api.json#/paths/~1plays/get/x", "bad.yaml", ".",
     "#/info/title/0", "%00.yaml", "a" * 5_000, "x\ny", "http://[", "#/paths/~1plays/get/responses/200/$ref"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["path", "response", "schema"])
def test_unresolvable_reference_refuses_only_its_operation(
    tmp_path: Path, reference: str, where: str
) -> None:
    write(tmp_path / "outside.yaml", "a: {get: {}}")
    inside = tmp_path / "inside"
    write(inside / "bad.yaml", "a: [")
    (inside / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    pointed: Json = {"$ref": reference}
    response = (
        {"content": {"application/json": {"schema": pointed}}} if where == "schema" else pointed
    )
    item = pointed if where == "path" else {"get": {"responses": {"200": response}}}
    content = small(paths={"/plays": item, "/fine": {"get": {}}})
    *errors, fine = read(write(inside / "api.json", content))
    assert isinstance(fine, SourceDocument)
    assert len(errors) == 1
    assert str(errors[0]).startswith("/plays: $ref '" if where == "path" else "GET /plays: $ref '")
    assert len(str(errors[0])) < 500


def test_root_folder_of_references_is_configurable(tmp_path: Path) -> None:
    write(tmp_path / "common.yaml", "item: {get: {summary: Far}}")
    path = write(
        tmp_path / "apis" / "a.json", small(paths={"/a": {"$ref": "../common.yaml#/item"}})
    )
    assert isinstance(read(path)[0], SourceError)
    (found,) = read(path, root=tmp_path)
    assert isinstance(found, SourceDocument)


def routes(**bodies: object) -> Serve:
    """A server with a response per file name."""

    def serve(connection: Any, head: str) -> None:
        name = head.split()[1].strip("/").partition(".")[0]
        connection.sendall(answer(json.dumps(bodies[name]).encode()))

    return serve


def read_url(url: str, limits: SourceLimits = ON_LOOPBACK) -> list[FileResult]:
    return list(read_source(OpenApiSourceConfig(name="docs", kind="openapi", url=url), limits))


def test_description_is_read_from_a_url() -> None:
    paths = {"/a": {"$ref": "parts.json#/item"}, "/b": {"$ref": "http://example.com/x#/y"},
             "/c": {"$ref": "file:///etc/passwd"}}  # fmt: skip
    with server(routes(api=small(paths=paths, servers=[{"url": "/v1"}]),
                       parts={"item": {"get": {"summary": "Far"}}})) as (url, heads):  # fmt: skip
        found = read_url(f"{url}/api.json")
    document, *errors = found
    assert isinstance(document, SourceDocument)
    assert (document.title, document.api_url) == ("Far", "/v1/a")
    assert f"`{url}/v1`" in body_of(document, "request_url")
    assert [str(error) for error in errors] == [
        "/b: $ref 'http://example.com/x#/y' cannot be resolved: leads to another origin: "
        "scheme, host and port must be those of the source",
        "/c: $ref 'file:///etc/passwd' cannot be resolved: not an http(s) URL",
    ]
    assert len(heads) == 2


def test_server_of_a_url_without_servers_is_its_host() -> None:
    with server(routes(api=small(), old={"swagger": "2.0", "paths": {"/plays": {"get": {}}}})) as (
        url,
        _,
    ):
        for name in ("api", "old"):
            (document,) = read_url(f"{url}/{name}.json")
            assert isinstance(document, SourceDocument)
            assert document.api_url == "/plays"
            assert f"`{url}/`" in body_of(document, "request_url")


def test_private_url_is_refused() -> None:
    with (
        server(routes(api=small())) as (url, heads),
        pytest.raises(SourceError, match="APIDESK_PRIVATE_HOSTS"),
    ):
        read_url(f"{url}/api.json", SourceLimits())
    assert not heads
