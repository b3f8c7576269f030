"""URLs that API pages give in labels: paths without a slash, and URLs without a method."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.calls import labelled_target
from tests.api_page_lines import read_lines, read_operations


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("`v4/boats/create`", "/v4/boats/create"),
        ("boats/{id}", "/boats/{id}"),
        ("boats/:id (see below)", "/boats/:id"),
        ("index.php/api/boats", "/index.php/api/boats"),
        ("路径是v4/boats", "/v4/boats"),
        ("/v4/boats", "/v4/boats"),
        ("https://a.example/v4/boats", "https://a.example/v4/boats"),
        ("api.a.example/v4/boats", "/v4/boats"),
        ("localhost:8080/v4/boats", "/v4/boats"),
        ("HOST/v4/boats", "/v4/boats"),
        ("BaseUrl/v4/boats", "/v4/boats"),
        ("your-domain/v4/boats", "/v4/boats"),
        ("域名/v4/boats", "/v4/boats"),
        ("serverUrl/v4/boats", "/v4/boats"),
        ("api_host/v4/boats", "/v4/boats"),
        ("none", ""),
    ],
)
def test_path_without_a_slash_is_read_whole(value: str, target: str) -> None:
    assert labelled_target(value) == target


def test_path_without_a_slash_is_the_url_of_the_operation(tmp_path: Path) -> None:
    page = (
        "# 创建船\n\n| 项目 | 内容 |\n| --- | --- |\n| 接口地址 | `v4/boats/create` |\n| 请求方式 | POST |\n\n"
        "## 请求参数\n\n| 参数名 | 必选 | 类型 |\n| --- | --- | --- |\n| name | 是 | String |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == ["POST /v4/boats/create 创建船", "name!"]


WITHOUT_METHOD = """# {title}

## 请求 URL 示例

```
https://boats.example/v4/boats/rent?app=7&user=admin
```

| 参数 | 说明 |
| --- | --- |
| boats.example | 域名 |
| v4/boats/rent | 请求接口 |

## {heading}

| 字段 | 类型 | 属性 | 说明 |
| --- | --- | --- | --- |
| Boat | String | 必填 | 船的编号 |
| Days | Integer | 选填 | 租期 |
"""


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("请求包字段说明", ["POST https://boats.example/v4/boats/rent 租船", "Boat!", "Days", "app", "user"]),
        ("请求字段说明", []),
        ("应答包字段说明", []),
    ],
)  # fmt: skip
def test_url_without_a_method_is_posted_if_the_page_describes_a_body(
    heading: str, expected: list[str], tmp_path: Path
) -> None:
    page = WITHOUT_METHOD.format(title="租船", heading=heading)
    assert read_lines(page, tmp_path / "page.md") == expected


def test_example_of_a_body_shows_that_a_url_without_a_method_is_posted(tmp_path: Path) -> None:
    page = WITHOUT_METHOD.format(title="租船", heading="请求字段说明")
    page += '\n## 请求示例\n\n```json\n{"Boat": "b1"}\n```\n'
    assert (
        read_lines(page, tmp_path / "page.md")[0] == "POST https://boats.example/v4/boats/rent 租船"
    )


def test_sending_a_notification_is_an_operation(tmp_path: Path) -> None:
    page = WITHOUT_METHOD.format(title="发送通知", heading="请求包字段说明")
    assert read_lines(page, tmp_path / "page.md")[0].startswith("POST ")


@pytest.mark.parametrize(
    ("title", "further"),
    [
        ("租船之后回调", ""),
        ("租船结果通知", ""),
        ("租船", "\n**请求 URL**：https://boats.example/v4/boats/return\n"),
    ],
    ids=["callback", "notification", "two URLs"],
)
def test_other_url_without_a_method_is_no_call(title: str, further: str, tmp_path: Path) -> None:
    page = WITHOUT_METHOD.format(title=title, heading="请求包字段说明") + further
    assert read_lines(page, tmp_path / "page.md") == []


def test_required_is_no_part_of_a_description(tmp_path: Path) -> None:
    page = WITHOUT_METHOD.format(title="租船", heading="请求包字段说明")
    boat, *_ = read_operations(page, tmp_path / "page.md")[0].request_parameters
    assert (boat.required, boat.description, boat.location) == (True, "船的编号", "body")


PARAMETERS = """
## 2. 输入参数

| 参数名称 | 必选 | 类型 | 描述 |
| --- | --- | --- | --- |
{row}| BoatId | 是 | String | 船的编号 |
"""
ACTION_ROW = "| Action | 是 | String | 公共参数，本接口取值：RentBoat。 |\n"


@pytest.mark.parametrize(
    "page",
    [
        "# 租船\n\n**Action**：`RentBoat`\n\n**接口请求域名**：`boats.example`\n" + PARAMETERS.format(row=""),
        "# 租船\n\n接口请求域名： boats.example 。\n" + PARAMETERS.format(row=ACTION_ROW),
        "# 租船\n" + PARAMETERS.format(row=ACTION_ROW) + "\n```\nPOST / HTTP/1.1\nHost: boats.example\n```\n",
        "# Rent a boat\n\nAction: RentBoat\n\nEndpoint: boats.example\n" + PARAMETERS.format(row=""),
    ],
    ids=["label", "row", "row and example", "English label"],
)  # fmt: skip
def test_action_is_the_operation(page: str, tmp_path: Path) -> None:
    operation = read_operations(page, tmp_path / "page.md")[0]
    assert (operation.method, operation.url) == ("POST", "/?Action=RentBoat")
    assert "BoatId" in [parameter.name for parameter in operation.request_parameters]


@pytest.mark.parametrize(
    "page",
    [
        "# Actions\n\nAction: Rent a boat\n\n{server}" + PARAMETERS.format(row=""),
        "# 租船\n\n- Action: RentBoat\n- Action: SellBoat\n\n{server}" + PARAMETERS.format(row=""),
        "# 租船\n\nAction: RentBoat\n\n{server}",
        "# Button\n\nAction: Navigate\n" + PARAMETERS.format(row=""),
        "# 租船\n\n{server}" + PARAMETERS.format(row="| Action | 是 | String | 取值：Rent / Sell |\n"),
        "# 租船\n\n{server}" + PARAMETERS.format(row="| Action | 是 | String | 取值为 Rent 或 Sell |\n"),
    ],
    ids=["words", "several", "no parameters", "no server", "several values", "two values"],
)  # fmt: skip
def test_other_action_is_no_operation(page: str, tmp_path: Path) -> None:
    page = page.replace("{server}", "接口请求域名：boats.example\n")
    assert not read_operations(page, tmp_path / "page.md")


def test_path_stays_without_the_action(tmp_path: Path) -> None:
    page = "# 租船\n\n`POST /v1/boats`\n" + PARAMETERS.format(row=ACTION_ROW)
    assert read_operations(page, tmp_path / "page.md")[0].url == "/v1/boats"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/boats/`id`/crew", "/boats/{id}/crew"),
        ("/boats/$`id`/crew", "/boats/${id}/crew"),
        ("/boats/[`id`]", "/boats/[id]"),
        ("/boats/:`id`", "/boats/:id"),
    ],
)
def test_name_in_backticks_in_the_url_of_a_component_is_a_placeholder(
    path: str, expected: str, tmp_path: Path
) -> None:
    page = (
        f'# Man a boat\n\n<Operation\nmethod="PUT"\nurl="{path}"\n/>\n\n'
        "## Body parameters\n\n| Name | Type |\n| --- | --- |\n| crew | string |\n\n"
        "## Example\n\n```shell\ncurl -X PUT https://boats.example/boats/$b7f2/crew\n```\n"
    )
    assert read_lines(page, tmp_path / "page.mdx") == [
        f"PUT {expected} Man a boat", "id!", "crew",
    ]  # fmt: skip


def test_block_tag_gives_the_method_of_the_url_in_it(tmp_path: Path) -> None:
    page = (
        '# Man a boat\n\n{% request "put" %} /boats/{id}/crew {% endrequest %}\n\n'
        "## Body parameters\n\n| Name | Type |\n| --- | --- |\n| crew | string |\n"
    )
    (operation,) = read_operations(page, tmp_path / "page.md")
    assert (operation.method, operation.url) == ("PUT", "/boats/{id}/crew")
    assert operation.document("a", "s", "en").description == ""
