"""API documents in JSON: sections, tables and page URLs."""

import json
from pathlib import Path

import pytest

from ingestion.text.markdown_blocks import parse_table
from schemas.document import Section, SourceDocument
from tests.source_kinds import KINDS, api_json, read, write


def read_api(tmp_path: Path, template: str = "", /, **fields: object) -> SourceDocument:
    write(tmp_path / "api.json", api_json(**fields))
    (document,) = read(KINDS["api_docs"].make, tmp_path, page_url=template)
    return document


def section_of(document: SourceDocument, kind: str) -> Section:
    (found,) = (section for section in document.sections if section.kind == kind)
    return found


def test_api_document_has_its_names_as_metadata(tmp_path: Path) -> None:
    document = read_api(tmp_path, serviceName="订单服务", version="v2", deprecated=True)
    assert document.title == document.api_name == "订单发货"
    assert document.id == document.api_id == "1110"
    assert (document.api_url, document.service_id) == ("/order/ship", "orders")
    assert document.service_name == "订单服务"
    assert document.metadata == {"version": "v2", "deprecated": "true"}
    body = section_of(document, "request_url").body
    assert all(word in body for word in ("v2", "订单服务", "已废弃", "`POST`", "`/order/ship`"))


def test_api_without_details_has_a_request_url_section(tmp_path: Path) -> None:
    document = read_api(tmp_path)
    assert [section.kind for section in document.sections] == ["request_url"]
    assert document.metadata == {}


@pytest.mark.parametrize(
    ("fields", "template", "expected"),
    [
        ({"pageUrl": "https://own"}, "https://x.y/{apiId}", "https://own"),
        ({}, "https://x.y/{serviceId}/{apiId}?v={version}", ""),
        ({"version": "v1"}, "https://x.y/{serviceId}/{apiId}?v={version}", "https://x.y/orders/1110?v=v1"),
        ({}, "https://x.y/{api_id}", ""),
    ],
    ids=["its own", "no value", "filled", "camelCase only"],
)  # fmt: skip
def test_api_page_url(tmp_path: Path, fields: dict[str, str], template: str, expected: str) -> None:
    assert read_api(tmp_path, template, **fields).page_url == expected


@pytest.mark.parametrize(
    ("language", "headings", "header"),
    [
        (
            "zh",
            ["请求头", "请求地址", "公共参数", "请求参数", "返回参数", "错误码", "权限包"],
            ["名称", "类型", "必填", "说明", "示例"],
        ),
        (
            "en",
            ["Request headers", "Request URL", "Public parameters", "Request parameters",
             "Response parameters", "Error codes", "Permission package"],
            ["Name", "Type", "Required", "Description", "Example"],
        ),
    ],
)  # fmt: skip
def test_api_has_seven_sections_in_its_language(
    tmp_path: Path, language: str, headings: list[str], header: list[str]
) -> None:
    document = read_api(
        tmp_path,
        language=language,
        requestHeaders=[{"name": "Content-Type"}],
        publicParameters=[{"name": "app_key"}],
        requestParameters=[{"name": "order_no"}],
        responseParameters=[{"name": "shipped"}],
        errorCodes=[{"code": "isv.x"}],
        permissionPackages=[{"name": "orders.write"}],
    )
    assert [section.heading for section in document.sections] == [(h,) for h in headings]
    assert document.language == language
    for section in document.sections[2:5]:
        assert parse_table(section.body)[0] == header


def test_child_parameters_have_dotted_names(tmp_path: Path) -> None:
    document = read_api(
        tmp_path,
        requestParameters=[
            {
                "name": "items[]",
                "type": "array",
                "required": True,
                "children": [
                    {"name": "sku", "children": [{"name": "id", "type": "long", "example": "7"}]},
                    {
                        "name": "unit",
                        "description": "Unit.",
                        "values": [{"value": "kg", "meaning": "千克"}, {"value": "g"}],
                    },
                ],
            },
            {"name": "note"},
        ],
    )
    rows = parse_table(section_of(document, "request_parameters").body)[1:]
    assert rows == [
        ["items[]", "array", "是", "", ""],
        ["items[].sku", "string", "否", "", ""],
        ["items[].sku.id", "long", "否", "", "7"],
        ["items[].unit", "string", "否", "Unit. 可选值：`kg` 千克；`g`", ""],
        ["note", "string", "否", "", ""],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a|b"),
        ("two\nlines\r\n\tand a tab", "two lines and a tab"),
        (r"^a\|b$", r"^a\|b$"),
        ("\\", "\\"),
        ("```\n# no heading", "``` # no heading"),
        ("a\u2028b", "a b"),
        ("<script>{{ x }}</script>", "<script>{{ x }}</script>"),
    ],
)
def test_text_is_escaped_in_table_cells(tmp_path: Path, text: str, expected: str) -> None:
    document = read_api(
        tmp_path, errorCodes=[{"code": "1", "message": text, "cause": text, "remedy": text}]
    )
    rows = parse_table(section_of(document, "error_codes").body)[1:]
    assert rows == [["1", expected, expected, expected]]


@pytest.mark.parametrize("parameters", [[{"name": "order_no"}], []], ids=["with a table", "alone"])
@pytest.mark.parametrize("kind", ["request", "response"])
def test_examples_are_in_the_section_of_their_parameters(
    tmp_path: Path, kind: str, parameters: list[dict[str, str]]
) -> None:
    example = {"说明": "a\n```\n| b |", "n": [1, None]}
    fields: dict[str, object] = {f"{kind}Example": example, f"{kind}Parameters": parameters}
    document = read_api(tmp_path, **fields)
    body = section_of(document, f"{kind}_parameters").body
    fenced = body.partition("```json\n")[2].rpartition("\n```")[0]
    assert json.loads(fenced) == example
    assert "说明" in fenced
    assert len(parse_table(body)) == (2 if parameters else 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], ["是", "否"]),
        ([True, None], ["是", ""]),
        (["true", "二选一"], ["是", "二选一"]),
        ([None, None], []),
    ],
)
def test_column_required_has_only_what_is_stated(
    tmp_path: Path, values: list[object], expected: list[str]
) -> None:
    parameters = [{"name": "a", "required": value} for value in values]
    body = section_of(read_api(tmp_path, responseParameters=parameters), "response_parameters").body
    header, *rows = parse_table(body)
    assert header == ["名称", "类型", *(["必填"] if expected else []), "说明", "示例"]
    assert [cell for row in rows for cell in row[2:-2]] == expected
