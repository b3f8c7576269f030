"""API pages that give the URL of an operation for several servers, such as production and a sandbox."""

from pathlib import Path

import pytest

from ingestion.sources.api_pages.servers import merge_servers
from tests.api_page_lines import read_lines, read_operations

PRODUCTION = "https://kiln.example/v2/firings"
SANDBOX = "https://sandbox.kiln.example/v2/firings"

PAGE = """# Start a firing

{stated}

## Request parameters

| Name | Type | Required |
| --- | --- | --- |
| kiln_no | string | yes |
"""

STATED = {
    "table": """## 请求地址

| 环境 | HTTP 请求地址 |
| --- | --- |
| 正式环境 | {production} |
| 沙箱环境 | {sandbox} |

请求方式：`POST`  Content-Type：`application/json`""",
    "table that begins with the test server": """| Environment | Base URL |
| --- | --- |
| UAT | `{sandbox}` |
| Live | `{production}` |

**Method**: `POST`""",
    "table with links": """Method: POST

| Environment | URL |
| --- | --- |
| Staging | [{sandbox}]({sandbox}) |
| Production | [{production}]({production}) |""",
    "method in each row": """| 环境 | 请求方式 | 地址 |
| --- | --- | --- |
| 正式环境 | POST | {production} |
| 沙箱环境 | POST | {sandbox} |""",
    "method in the first column": """| Method | Environment | URL |
| --- | --- | --- |
| POST | Test | {sandbox} |
| POST | Production | {production} |""",
    "method before each URL": """| Environment | Endpoint |
| --- | --- |
| Sandbox | `POST {sandbox}` |
| Production | `POST {production}` |""",
    "path in a column of its own": """| 环境 | 域名 | 路径 | 请求方式 |
| --- | --- | --- | --- |
| 正式 | https://kiln.example | /v2/firings | POST |
| 沙箱 | https://sandbox.kiln.example | /v2/firings | POST |""",
    "columns": """| Sandbox | Production | Method |
| --- | --- | --- |
| {sandbox} | {production} | POST |""",
    "table of facts": """| 接口地址（沙箱） | {sandbox} |
| --- | --- |
| 接口地址（正式） | {production} |
| 请求方式 | POST |""",
    "list": """请求地址：

- 正式环境：{production}
- 沙箱环境：{sandbox}

请求方式：POST""",
    "list with the method": """- **Production:** `{production}`
- **Sandbox:** `{sandbox}`
- **Method:** `POST`""",
    "list of calls": """- Staging: `POST {sandbox}`
- Production: `POST {production}`""",
    "lines": """Sandbox: {sandbox}
Production: {production}

Method: POST""",
    "paragraphs": """Sandbox: {sandbox}

Production: {production}

Method: POST""",
    "code": """```
POST {production}
POST {sandbox}
```""",
    "code blocks": """Production:

```
{production}
```

Sandbox:

```
{sandbox}
```

Method: POST""",
    "cell": """| Item | Value |
| --- | --- |
| Method | POST |
| URL | Production: {production}<br>Sandbox: {sandbox} |""",
}
"""Statements of the same operation on two servers, by form."""


@pytest.mark.parametrize("form", STATED)
def test_url_of_production_is_that_of_the_operation(form: str, tmp_path: Path) -> None:
    stated = STATED[form].format(production=PRODUCTION, sandbox=SANDBOX)
    page = PAGE.format(stated=stated)
    path = tmp_path / "page.md"
    assert read_lines(page, path) == [f"POST {PRODUCTION} Start a firing", "kiln_no!"]
    (operation,) = read_operations(page, path)
    assert any("sandbox.kiln.example" in block.text for block in operation.prose)


def test_addresses_of_servers_are_not_the_url_if_a_path_follows(tmp_path: Path) -> None:
    stated = """| Environment | Base URL |
| --- | --- |
| Production | https://kiln.example/v2 |
| Sandbox | https://sandbox.kiln.example/v2 |

Method: POST

Path: /firings"""
    lines = read_lines(PAGE.format(stated=stated), tmp_path / "page.md")
    assert lines == ["POST /firings Start a firing", "kiln_no!"]


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([("Add", "https://a.example/add"), ("Drop", "https://b.example/drop")], id="paths"),
        pytest.param([("Text", "POST /v1/send"), ("Image", "POST /v1/send")], id="one server"),
        pytest.param([("Get", "GET https://a.example/x"), ("Put", "PUT https://b.example/x")], id="methods"),
        pytest.param([("Live", "https://a.example"), ("Sandbox", "https://b.example")], id="no path"),
        pytest.param(
            [("A", "GET https://a.example/x"), ("B", "GET https://b.example/x"), ("C", "GET /y")],
            id="further calls",
        ),
    ],
)  # fmt: skip
def test_other_urls_are_not_merged(pairs: list[tuple[str, str]]) -> None:
    assert merge_servers(pairs) == pairs


def test_server_may_have_a_path_of_its_own() -> None:
    pairs = [("Sandbox", "https://a.example/sandbox/v1/x"), ("Live", "https://a.example/v1/x")]
    assert merge_servers(pairs) == [("Production URL", "https://a.example/v1/x")]
