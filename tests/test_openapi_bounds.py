"""OpenAPI and Swagger descriptions that are invalid, hostile or published by real APIs."""

import copy
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingestion.sources.openapi.reader import ERRORS_ID, OVERVIEW_ID
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import SourceLimits
from tests.conftest import needs_shared_data
from tests.openapi_descriptions import (
    DATA,
    Json,
    answer_rows,
    answering,
    body_of,
    one,
    openapi_3,
    read,
    refusal_of,
    refused,
    rows_of,
    small,
    swagger_2,
    write,
)

# --- invalid descriptions


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "api.json: not an OpenAPI"), ("[]", "api.json: not an OpenAPI"), ("null", "api.json: not an OpenAPI"),
        ("just text", "api.json: not an OpenAPI"), ("{}", "api.json: not an OpenAPI"), ('{"swagger": "1.2"}', "api.json: not an OpenAPI"),
        ('{"openapi": 4}', "api.json: not an OpenAPI"), ('{"openapi": ["3"]}', "api.json: not an OpenAPI"),
        ('{"openapi": "3.0.0",', "api.json: not valid JSON"), ("a: b: c", "api.json: not valid YAML"),
        ("a: [", "api.json: not valid YAML"), ("a: *b", "api.json: not valid YAML"), (b"\xff\xfa\x00", "api.json: not UTF-8"), (b"\xff\xfea\x00b", "api.json: not UTF-16 (byte 4)"),
        ("a: &a [*a]", "api.json: contains an alias inside the value that it refers to"), ("&a {b: {c: *a}}", "api.json: contains an alias inside the value that it refers to"),
        ("? [a]\n: b", "api.json: a key is a list"), ("[" * 5_000, "api.json: n"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "api.json: nests lists and objects more than"), ("- " * 100_000, "api.json: nests lists and objects more than"),
        ("{" * 100_000, "api.json: n"), ("a: !!python/object/apply:os.system [x]", "api.json: not an OpenAPI"),
        ("n: " + "9" * 10_000, "api.json: not an OpenAPI"), ('{"n": ' + "9" * 10_000 + "}", "api.json: not valid JSON"),
    ],
)  # fmt: skip
def test_invalid_description_is_refused_in_one_line(
    tmp_path: Path, content: str | bytes, problem: str
) -> None:
    assert refused(tmp_path, content).startswith(problem)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^none\.json: no such file$"):
        read(tmp_path / "none.json")


def test_folder_instead_of_a_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is a folder; an OpenAPI description must be a file$"):
        read(tmp_path)


def laughs(levels: int, form: str) -> str:
    lines = ["a0: &a0 {x0: 1, y0: 2}"]
    for n in range(1, levels):
        aliases = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(f"a{n}: &a{n} " + form.format(aliases))
    return "\n".join(["openapi: 3.0.0", *lines])


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}", "{{k: [{}]}}"])
def test_each_use_of_an_alias_counts_against_the_limit(tmp_path: Path, form: str) -> None:
    assert "APIDESK_MAX_VALUES" in refused(tmp_path, laughs(12, form))
    assert read(write(tmp_path / "small.yaml", laughs(4, form))) == []


def test_large_files_and_documents_are_refused(tmp_path: Path) -> None:
    content = small({"x-list": [[]] * 3_000, "summary": "a, b, [c], {d}" * 20_000})
    assert refused(tmp_path, content, SourceLimits(file_bytes=999)) == (
        "api.json: larger than 0.000999 MB (APIDESK_MAX_FILE_BYTES)"
    )
    assert "APIDESK_MAX_VALUES" in refused(tmp_path, content, SourceLimits(values=3_000))
    assert "APIDESK_MAX_VALUES" in refused(
        tmp_path, yaml.safe_dump(content), SourceLimits(values=3_000)
    )
    one(tmp_path, content)


def test_file_that_grows_while_it_is_read_counts_with_its_new_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = Path.stat

    def empty(path: Path, **fields: Any) -> os.stat_result:
        result = tuple(stat(path, **fields))
        return os.stat_result((*result[:6], 0, *result[7:]))

    monkeypatch.setattr(Path, "stat", empty)
    write(tmp_path / "far.json", {"item": {"get": {"summary": "a" * 600}}})
    content = small(paths={"/a": {"$ref": "far.json#/item"}}, info={"title": "a" * 600})
    assert "APIDESK_MAX_FILE_BYTES" in refused(tmp_path, content, SourceLimits(file_bytes=999))


def test_punctuation_in_strings_does_not_count_against_the_limit(tmp_path: Path) -> None:
    content = small({"summary": "a, b, [c], {d}" * 1_000})
    for text in (json.dumps(content), yaml.safe_dump(content)):
        (found,) = read(write(tmp_path / "api.json", text), SourceLimits(values=3_000))
        assert isinstance(found, SourceDocument), found


def test_yaml_scalars_are_read_as_in_json(tmp_path: Path) -> None:
    content = """
openapi: 3.0.3
info: {title: Hall, version: 2024-01-31}
paths:
  /plays:
    get:
      operationId: first
      operationId: plays
      x-base: &base {description: "All.", headers: {}}
      parameters: [{name: from, in: query, schema: {type: string, default: 2024-01-31, enum: [no, on, 012, 1e3, ~]}}]
      responses:
        200: {<<: *base}
        404: {description: None left}
"""
    document = one(tmp_path, content)
    assert document.id == "plays"
    (row,) = rows_of(document, "request_parameters")
    assert row[3] == "Default: `2024-01-31`. Values: `no`; `on`; `12`; `1000.0`"
    assert rows_of(document, "error_codes") == [["404", "Not Found", "None left", ""]]
    assert "`200` All." in body_of(document, "response_parameters")


@pytest.mark.parametrize("as_yaml", [False, True])
def test_numbers_too_large_for_a_float_stay_text(tmp_path: Path, as_yaml: bool) -> None:
    schema = '{"type": "number", "default": 1e999, "enum": [-1e999, 2.5]}'
    operation = f'{{"parameters": [{{"name": "n", "in": "query", "schema": {schema}}}]}}'
    content = f'{{"openapi": "3.0.0", "paths": {{"/a": {{"get": {operation}}}}}}}'
    (row,) = rows_of(one(tmp_path, f"--- {content}" if as_yaml else content), "request_parameters")
    assert row[3] == "Default: `1e999`. Values: `-1e999`; `2.5`"


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    document = one(
        tmp_path, '{"openapi": "3.0.0", "paths": {"/a\\ud800": {"get": {"summary": "\\udfff!"}}}}'
    )
    assert (document.title, document.api_url) == ("?!", "/a?")


def doubling(levels: int, form: Callable[[Json], Json]) -> Json:
    names = {f"S{n}": form({"$ref": f"#/components/schemas/S{n + 1}"}) for n in range(levels)}
    return answering(
        {"$ref": "#/components/schemas/S0"}, **names, **{f"S{levels}": {"type": "string"}}
    )


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "form",
    [
        lambda ref: {"properties": {"l": ref, "r": ref, "m": ref}},
        lambda ref: {
            "properties": {"l": {"allOf": [ref, ref]}, "r": {"type": "array", "items": ref}}
        },
        lambda ref: {"oneOf": [ref, {**ref, "title": "b"}, {"properties": {"x": ref}}]},
        lambda ref: {"allOf": [ref, ref, ref]},
        lambda ref: {"type": "array", "items": ref},
        lambda ref: {"additionalProperties": ref, "properties": {"a": ref}},
        lambda ref: ref,
    ],
)
def test_exponential_schemas_stay_within_limits(
    tmp_path: Path, form: Callable[[Json], Json]
) -> None:
    found = read(write(tmp_path / "a.json", doubling(60, form)))
    assert len(found) == 1
    if isinstance(found[0], SourceDocument):
        assert len(rows_of(found[0], "response_parameters")) <= 700
    else:
        assert "a schema combines more than" in str(found[0])


def test_large_branch_does_not_use_up_the_rows_of_others(tmp_path: Path) -> None:
    wide: Json = {
        "properties": {f"p{n}": {"properties": {f"q{m}": {} for m in range(50)}} for n in range(50)}
    }
    rows = answer_rows(tmp_path, {"properties": {"wide": wide, "last": {"type": "string"}}})
    assert rows[-1][0] == "last"
    assert len(rows) <= 600
    assert any("left out" in row[3] for row in rows)


def test_properties_of_a_body_count_once_towards_the_limit(tmp_path: Path) -> None:
    properties: Json = {f"p{n}": {"type": "string"} for n in range(400)}
    nested: Json = {"properties": {f"q{n}": {"type": "string"} for n in range(100)}}
    rows = answer_rows(tmp_path, {"properties": {**properties, "last": nested}})
    assert len(rows) == 501
    assert not any("left out" in row[3] for row in rows)


def test_note_marks_omitted_fields_after_hidden_ones(tmp_path: Path) -> None:
    properties: Json = {f"p{n}": {"type": "string"} for n in range(598)}
    hidden: Json = {"properties": {"w": {"type": "string", "writeOnly": True}, "x": {}, "y": {}}}
    rows = answer_rows(tmp_path, {"properties": {**properties, "last": hidden}})
    assert [row[0] for row in rows[-2:]] == ["last", "last.x"]
    assert "left out" in rows[-2][3]


def test_note_marks_omitted_fields_of_deeply_nested_arrays(tmp_path: Path) -> None:
    grid: Json = {"properties": {"cell": {"type": "string"}}}
    for _ in range(11):
        grid = {"type": "array", "items": grid}
    (row,) = answer_rows(tmp_path, {"properties": {"grid": grid}})
    assert row[0] == "grid"
    assert "left out" in row[3]
    rows = answer_rows(tmp_path, {"properties": {"grid": grid["items"]}})
    assert [row[0] for row in rows] == ["grid", f"grid{'[]' * 10}.cell"]
    assert "left out" not in rows[0][3]


def test_note_marks_omitted_variants_after_a_scalar_one(tmp_path: Path) -> None:
    properties: Json = {f"p{n}": {"type": "string"} for n in range(599)}
    last: Json = {"oneOf": [{"type": "string"}, {"properties": {"x": {}}}]}
    rows = answer_rows(tmp_path, {"properties": {**properties, "last": last}})
    assert rows[-1][0] == "last"
    assert "left out" in rows[-1][3]


@pytest.mark.parametrize(
    "circle",
    [
        {"A": {"$ref": "#/components/schemas/A"}},
        {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}},
        {"A": {"allOf": [{"$ref": "#/components/schemas/A"}], "properties": {"x": {}}}},
        {"A": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}},
        {"A": {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]}},
        {"A": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"x": {}}}]}},
        {"A": {"additionalProperties": {"$ref": "#/components/schemas/A"}}},
    ],
)
def test_recursive_schemas_are_cut(tmp_path: Path, circle: Json) -> None:
    rows = answer_rows(
        tmp_path, {"properties": {"a": {"$ref": "#/components/schemas/A"}}}, **circle
    )
    assert rows[0][0] == "a"
    assert len(rows) < 20


def test_operations_share_one_limit(tmp_path: Path) -> None:
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(100)}}
    content = answering({"$ref": "#/components/schemas/S"}, S=schema)
    content["paths"] = {f"/{n}": content["paths"]["/plays"] for n in range(30)}
    found = read(write(tmp_path / "a.json", content), SourceLimits(values=1_500))
    assert isinstance(found[0], SourceDocument)
    assert isinstance(found[-1], SourceError)
    assert "APIDESK_MAX_VALUES" in str(found[-1])


# --- anything at all


WRONG: tuple[Any, ...] = (
    None, True, 0, -1.5, 10**400, "", "text", "\x00\n|", [], {}, [[]], [None], {"": None}, {"$ref": 3},
    {"$ref": "#/paths"}, {"$ref": "#"}, {"type": ["null"]}, {"type": {}}, [{"$ref": "#/info"}], "x" * 50_000,
)  # fmt: skip


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every list and object in `node`, with each of its keys."""
    if isinstance(node, dict):
        return [(node, key) for key in node] + [p for v in node.values() for p in places(v)]
    if isinstance(node, list):
        return [(node, n) for n in range(len(node))] + [p for v in node for p in places(v)]
    return []


def corrupted(description: Json, seed: int) -> Json:
    rng = random.Random(seed)
    description = copy.deepcopy(description)
    for _ in range(rng.randint(1, 6)):
        holder, key = rng.choice(places(description))
        if rng.random() < 0.2:
            del holder[key]
        elif rng.random() < 0.2:
            holder[key] = copy.deepcopy(rng.choice([h for h, _ in places(description)]))
        else:
            holder[key] = copy.deepcopy(rng.choice(WRONG))
        if not places(description):
            break
    return description


@pytest.mark.acceptance
@pytest.mark.parametrize("make", [swagger_2, lambda: openapi_3("3.0.3"), lambda: openapi_3("3.1.0")], ids=["2.0", "3.0", "3.1"])  # fmt: skip
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(40), id="40 seeds"),
        pytest.param(range(40, 250), id="210 more", marks=pytest.mark.acceptance),
    ],
)
def test_corrupted_description_is_read_or_refused_in_one_line(
    tmp_path: Path, make: Callable[[], Json], seeds: range
) -> None:
    whole = make()
    for seed in seeds:
        path = write(
            tmp_path / "a.json",
            json.dumps(corrupted(whole, seed)).replace("10" + "0" * 399, "1" + "0" * 400),
        )
        assert "\n" not in refusal_of(path)


# --- descriptions of real platforms


def count_operations(path: Path) -> int:
    methods = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
    paths = json.loads(path.read_text(encoding="utf-8"))["paths"]
    return sum(key in methods for item in paths.values() for key in item)


@pytest.mark.acceptance
@needs_shared_data
@pytest.mark.parametrize(
    ("name", "count"),
    [("napcat.zh.openapi31", 161), ("wechatpay.zh.swagger2", 1154), ("dify.zh.openapi30", 82),
     ("dify.en.openapi30", 82), ("slack.en.swagger2", 174)],
)  # fmt: skip
def test_all_operations_of_a_real_description_are_read(name: str, count: int) -> None:
    path = DATA / f"{name}.json"
    found = [each for each in read(path) if getattr(each, "id", "") not in (OVERVIEW_ID, ERRORS_ID)]
    assert len(found) == count == count_operations(path)
    for document in found:
        assert isinstance(document, SourceDocument)
        assert document.language == name.split(".")[1]
        assert document.title
        assert document.api_url.startswith("/")


@needs_shared_data
@pytest.mark.parametrize("path", sorted(DATA.glob("pass/*")), ids=lambda path: path.name)
def test_valid_descriptions_are_read(path: Path) -> None:
    errors = [str(each) for each in read(path) if isinstance(each, SourceError)]
    if path.name == "externalPathItemRef.yaml":
        assert len(errors) == 2
    else:
        assert not errors
    assert all("points outside the source folder" in error for error in errors)


@needs_shared_data
@pytest.mark.parametrize("path", sorted(DATA.glob("fail/*")), ids=lambda path: path.name)
def test_invalid_descriptions_are_read_or_refused(path: Path) -> None:
    assert "\n" not in refusal_of(path)
