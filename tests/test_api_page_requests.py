"""Calls in requests that a page shows: GraphQL, other methods, and request lines with header lines."""

from pathlib import Path

import pytest

from tests.api_page_lines import read_lines

SIDE_BY_SIDE = """# Boats

## List boats

### REST

```
GET /boats
SEARCH /boats
```

Returns the boats.

```json
{ "boats": [] }
```

### GraphQL

```
POST /query/boats
```

```graphql
query { boats { name } }
```

## Sink a boat

### REST

```
DELETE /boats/:id
```

### GraphQL

```
POST /query/boats
```

```graphql
mutation { sink(id: 3) { depth } }
```

### Errors

| Status | Code |
| --- | --- |
| 409 | `sunk_before` |
"""


def test_line_with_an_unknown_method_is_ignored(tmp_path: Path) -> None:
    page = "# List boats\n\n```\nGET /boats\nSEARCH /boats\n```\n\n| Name | Required |\n| --- | --- |\n| port | no |\n"
    assert read_lines(page, tmp_path / "page.md") == ["GET /boats List boats", "port"]


def test_graphql_call_next_to_other_calls_is_no_operation(tmp_path: Path) -> None:
    assert read_lines(SIDE_BY_SIDE, tmp_path / "page.md") == [
        "GET /boats List boats",
        "DELETE /boats/:id Sink a boat",
        "id!",
        "sunk_before",
    ]


def test_graphql_call_of_its_own_page_is_an_operation(tmp_path: Path) -> None:
    page = (
        "# Run a query\n\n```\nPOST /query\n```\n\n```graphql\nquery { boats }\n```\n\n"
        "## Body\n\n| Name | Required |\n| --- | --- |\n| query | yes |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == ["POST /query Run a query", "query!"]


@pytest.mark.parametrize("heading", ["Query boats", "GraphQL"])
def test_graphql_call_of_its_own_section_is_an_operation(heading: str, tmp_path: Path) -> None:
    page = (
        "# Fleet\n\n## Log in\n\n`POST /login`\n\n| Name | Required |\n| --- | --- |\n| user | yes |\n\n"
        f"## {heading}\n\n`POST /graphql`\n\n```graphql\nquery {{ boats }}\n```\n\n"
        "### Errors\n\n| Code | Meaning |\n| --- | --- |\n| 40901 | Too many fields |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /login Log in",
        "user!",
        f"POST /graphql {heading}",
        "40901",
    ]


def test_graphql_call_with_its_own_parameters_is_an_operation(tmp_path: Path) -> None:
    header = "| Name | Required |\n| --- | --- |\n"
    page = (
        f"# Fleet\n\n## Log in\n\n`POST /login`\n\n{header}| user | yes |\n\n"
        "## Run a query\n\n`POST /graphql`\n\n```graphql\nquery { boats }\n```\n\n"
        f"### Body\n\n{header}| query | yes |\n| variables | no |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /login Log in",
        "user!",
        "POST /graphql Run a query",
        "query!",
        "variables",
    ]


def test_request_line_with_header_lines_states_a_call(tmp_path: Path) -> None:
    table = "| Name | Required |\n| --- | --- |\n"
    page = (
        "# Fleet\n\n## Reference\n\n### stop()\n\nStop it.\n\n```http\nPOST /boats/{id}/stop\n```\n\n"
        f"{table}| speed | no |\n\n### turn()\n\nTurn it.\n\n"
        '```http\nPOST /boats/{id}/turn\nContent-Type: application/json\n\n{"course": 90}\n```\n\n'
        f"{table}| course | yes |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        "POST /boats/{id}/stop stop()",
        *["id!", "speed"],
        "POST /boats/{id}/turn turn()",
        *["id!", "course!"],
    ]


def test_request_with_a_token_and_a_body_right_below_a_heading_states_a_call(
    tmp_path: Path,
) -> None:
    page = (
        "# Fleet\n\n## List boats\n\n`GET /boats`\n\n| Name | Required |\n| --- | --- |\n| port | no |\n\n"
        "## Turn a boat\n\n```http\nPOST /boats/turn\nAuthorization: Bearer abc\n"
        'Content-Type: application/json\n\n{"course": 90}\n```\n\n'
        "| Name | Required |\n| --- | --- |\n| course | yes |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == [
        *["GET /boats List boats", "port"],
        *["POST /boats/turn Turn a boat", "course!"],
    ]


def test_request_with_header_lines_may_be_an_example_of_the_call_above(tmp_path: Path) -> None:
    page = (
        "# Fleet\n\n## Get a boat\n\n`GET /boats/{id}`\n\nSend your key.\n\n"
        "```http\nGET /boats/17\nAuthorization: Bearer abc\n```\n\n"
        "| Name | Required |\n| --- | --- |\n| lang | no |\n"
    )
    assert read_lines(page, tmp_path / "page.md") == ["GET /boats/{id} Get a boat", "id!", "lang"]


@pytest.mark.parametrize(
    "page",
    [
        "# Authentication\n\nSend the token in a header:\n\n"
        "```http\nGET /v1/boats\nAuthorization: Bearer <token>\n```\n\n"
        "## Errors\n\n| Code | Meaning |\n| --- | --- |\n| 40101 | No token |\n",
        "# Pagination\n\n```http\nGET /v1/boats?page=2\nAccept: application/json\n```\n\n"
        "| Name | Type | Required |\n| --- | --- | --- |\n| page | int | no |\n",
        "# Running\n\n## Logs\n\n```\nGET /v1/health\nstatus: 200\n```\n\n"
        "## Errors\n\n| Code | Meaning |\n| --- | --- |\n| 40101 | No token |\n",
    ],
)
def test_example_with_header_lines_in_a_guide_is_no_operation(page: str, tmp_path: Path) -> None:
    assert read_lines(page, tmp_path / "page.md") == []
