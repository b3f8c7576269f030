"""Wikis on loopback with the protocols of the real ones, and the configuration of each as a source."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.scripted_server import Reply, Request, ScriptedServer

TOKEN = "wiki-never-to-be-seen"
Json = dict[str, Any]


@dataclass
class WikiPage:
    """A page with a paragraph below a heading, and a table below a second heading."""

    title: str
    text: str
    code: str = "20001"


@dataclass
class Wiki(ScriptedServer):
    """A wiki whose pages have ids; subclasses render them."""

    pages: dict[str, WikiPage] = field(default_factory=dict)
    content_path = ""
    """A part of the path that only requests for content have."""

    def __post_init__(self) -> None:
        super().__init__()

    def source(self) -> Json:
        """Return the table of platform.toml without `name` and `kind`."""
        raise NotImplementedError


def json_reply(body: object, code: int = 200, **headers: str) -> Reply:
    return Reply(json.dumps(body).encode(), code, {"Content-Type": "application/json", **headers})


NOT_FOUND = json_reply({"message": "not found"}, 404)
UNAUTHORIZED = json_reply({"message": "unauthorized"}, 401)


class Confluence(Wiki):
    """Confluence's REST API, version 1."""

    content_path = "/rest/api/content"

    def source(self) -> Json:
        return {
            "loader": "apidesk.loaders.ConfluenceHtmlLoader",
            "arguments": {
                "url": self.url,
                "token": {"env": "WIKI_TOKEN"},
                "space_key": "DEV",
                "limit": 2,
            },
            "id": "{id}",
            "page_url": "{source}",
            "format": "html",
        }

    def reply(self, request: Request) -> Reply:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return UNAUTHORIZED
        if request.path.endswith("/restriction/byOperation"):
            restrictions: Json = {"user": {"results": []}, "group": {"results": []}}
            return json_reply({"read": {"restrictions": restrictions}})
        if request.path != "/rest/api/content" or request.query["spaceKey"] != "DEV":
            return NOT_FOUND
        start = int(request.query.get("start", 0))
        ids = list(self.pages)[start : start + int(request.query["limit"])]
        return json_reply({"results": [self._page(page_id) for page_id in ids]})

    def _page(self, page_id: str) -> Json:
        page = self.pages[page_id]
        html = (
            f"<h2>Sending</h2><p>{page.text}</p><h2>Errors</h2>"
            '<div class="table-wrap"><table class="confluenceTable"><tbody>'
            '<tr><th class="confluenceTh">code</th><th class="confluenceTh">reason</th></tr>'
            f'<tr><td class="confluenceTd">{page.code}</td><td class="confluenceTd">expired</td></tr>'
            "</tbody></table></div>"
        )
        return {
            "id": page_id,
            "status": "current",
            "title": page.title,
            "body": {"view": {"value": html}},
            "_links": {"webui": f"/display/DEV/{page_id}"},
        }


def markdown_of(page: WikiPage) -> str:
    table = f"| code | reason |\n| --- | --- |\n| {page.code} | expired |"
    return f"# {page.title}\n\n## Sending\n\n{page.text}\n\n## Errors\n\n{table}\n"


class GitHub(Wiki):
    """GitHub's REST API: the tree of a branch, and the content of a file."""

    content_path = "/contents/"

    def source(self) -> Json:
        return {
            "loader": "langchain_community.document_loaders.github.GithubFileLoader",
            "arguments": {
                "repo": "acme/docs",
                "branch": "main",
                "access_token": {"env": "WIKI_TOKEN"},
                "github_api_url": self.url,
                "file_filter": {"search": r"\.mdx?$"},
            },
            "id": "{path}",
            "page_url": "https://github.example/acme/docs/blob/main/{path}",
        }

    def reply(self, request: Request) -> Reply:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return UNAUTHORIZED
        if request.path == "/repos/acme/docs/git/trees/main":
            tree = [{"path": f"{name}.md", "type": "blob", "sha": "1"} for name in self.pages]
            logo = {"path": "logo.png", "type": "blob", "sha": "2"}
            return json_reply({"tree": [*tree, logo], "truncated": False})
        name = request.path.removeprefix("/repos/acme/docs/contents/").removesuffix(".md")
        if name not in self.pages:
            return NOT_FOUND
        content = base64.encodebytes(markdown_of(self.pages[name]).encode()).decode()
        return json_reply({"type": "file", "encoding": "base64", "content": content})


def rich_text(text: str, **fields: Any) -> list[Json]:
    annotations = {"code": fields.pop("code", False), "bold": False}
    run = {"type": "text", "plain_text": text, "href": None, "annotations": annotations}
    return [run | fields]


class Notion(Wiki):
    """Notion's API: search, and the children of a block, two at a time."""

    content_path = "/children"

    def source(self) -> Json:
        return {
            "loader": "apidesk.loaders.NotionLoader",
            "arguments": {"integration_token": {"env": "WIKI_TOKEN"}, "base_url": f"{self.url}/v1"},
            "id": "{id}",
            "page_url": "{url}",
        }

    def reply(self, request: Request) -> Reply:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            return UNAUTHORIZED
        if request.headers["Notion-Version"] != "2022-06-28":
            return json_reply({"message": "version"}, 400)
        if (request.method, request.path) == ("POST", "/v1/search"):
            body = json.loads(request.body)
            pages = [self.page(page_id) for page_id in self.pages]
            return _notion_list(pages, body.get("start_cursor", "0"))
        parent_id = request.path.removeprefix("/v1/blocks/").removesuffix("/children")
        blocks = self.children(parent_id)
        if blocks is None:
            return NOT_FOUND
        return _notion_list(blocks, request.query.get("start_cursor", "0"))

    def page(self, page_id: str) -> Json:
        """Return the page with this id, as a search finds it."""
        title = {"id": "title", "type": "title", "title": rich_text(self.pages[page_id].title)}
        tags = {"type": "multi_select", "multi_select": [{"name": "api"}, {"name": "v2"}]}
        return {
            "object": "page",
            "id": page_id,
            "archived": False,
            "url": f"https://www.notion.so/{page_id}",
            "properties": {"Name": title, "Tags": tags},
        }

    def children(self, parent_id: str) -> list[Json] | None:
        """Return the blocks in a page or block; None if there is no page or block with this id."""
        page_id, _, part = parent_id.partition("-")
        page = self.pages.get(page_id)
        if page is None:
            return None
        if part == "table":
            rows = [("code", "reason"), (page.code, "expired")]
            cells = [[rich_text(cell) for cell in row] for row in rows]
            return [notion_block("table_row", cells=row) for row in cells]
        return [
            notion_block("heading_2", rich_text=rich_text("Sending")),
            notion_block("paragraph", rich_text=rich_text(page.text)),
            notion_block("heading_2", rich_text=rich_text("Errors")),
            notion_block("table", id=f"{page_id}-table", has_children=True, table_width=2),
            notion_block("child_page", id="other", has_children=True, title="Another page"),
        ]


def notion_block(kind: str, id: str = "b", has_children: bool = False, **content: Any) -> Json:
    return {"object": "block", "id": id, "type": kind, "has_children": has_children, kind: content}


def _notion_list(items: list[Json], cursor: str) -> Reply:
    start = int(cursor)
    end = start + 2
    has_more = end < len(items)
    body = {"object": "list", "results": items[start:end], "has_more": has_more}
    return json_reply({**body, "next_cursor": str(end) if has_more else None})


class Yuque(Wiki):
    """Yuque's API: the documents of a book, and one document."""

    content_path = "/docs/"

    def source(self) -> Json:
        return {
            "loader": "apidesk.loaders.YuqueLoader",
            "arguments": {
                "access_token": {"env": "WIKI_TOKEN"},
                "books": ["acme/api"],
                "base_url": self.url,
            },
            "id": "{id}",
            "page_url": "{url}",
        }

    def reply(self, request: Request) -> Reply:
        if request.headers["X-Auth-Token"] != TOKEN:
            return UNAUTHORIZED
        base = "/api/v2/repos/acme/api/docs"
        if request.path == base:
            entries = [{"slug": slug, "status": "1"} for slug in self.pages]
            start = int(request.query["offset"])
            draft = {"slug": "draft", "status": "0"}
            return json_reply(
                {"data": [*entries, draft][start : start + int(request.query["limit"])]}
            )
        page = self.pages.get(request.path.removeprefix(f"{base}/"))
        if page is None:
            return NOT_FOUND
        body = markdown_of(page).replace("## Sending", '<a name="aBc1"></a>\n## Sending')
        data = {"title": page.title, "format": "lake", "description": "", "body": body}
        return json_reply({"data": data})


def feishu_text(text: str, **style: Any) -> Json:
    return {"elements": [{"text_run": {"content": text, "text_element_style": style}}], "style": {}}


class Feishu(Wiki):
    """Feishu's open API: a token, the nodes of a wiki space, and the blocks of a document."""

    content_path = "/blocks"

    def source(self) -> Json:
        return {
            "loader": "apidesk.loaders.FeishuWikiLoader",
            "arguments": {
                "app_id": "cli_a1",
                "app_secret": {"env": "WIKI_TOKEN"},
                "space_id": "70001",
                "base_url": self.url,
                "wiki_url": "https://acme.feishu.example/wiki",
            },
            "id": "{id}",
            "page_url": "{url}",
        }

    def reply(self, request: Request) -> Reply:
        path = request.path.removeprefix("/open-apis/")
        if path == "auth/v3/tenant_access_token/internal":
            if json.loads(request.body) != {"app_id": "cli_a1", "app_secret": TOKEN}:
                return json_reply({"code": 10014, "msg": "app secret invalid"})
            return json_reply({"code": 0, "tenant_access_token": "t-1", "expire": 7200})
        if request.headers["Authorization"] != "Bearer t-1":
            return json_reply({"code": 99991663, "msg": "Invalid access token"}, 401)
        if path == "wiki/v2/spaces/70001/nodes":
            return self._nodes(request)
        document_id = path.removeprefix("docx/v1/documents/").removesuffix("/blocks")
        page = self.pages.get(document_id.removeprefix("doc-"))
        if page is None:
            return json_reply({"code": 1770002, "msg": "not found"}, 404)
        return _feishu_items(self.blocks(page), request, 4)

    def _nodes(self, request: Request) -> Reply:
        """Return the node of the first page at the top level, and the nodes of all other pages below it."""
        ids = list(self.pages)
        parent = request.query.get("parent_node_token", "")
        nodes = [
            {
                "node_token": page_id,
                "obj_token": f"doc-{page_id}",
                "obj_type": "docx",
                "title": self.pages[page_id].title,
                "has_child": page_id == ids[0],
            }
            for page_id in (ids[1:] if parent == ids[0] else ids[:1])
        ]
        return _feishu_items(nodes, request, 2)

    def blocks(self, page: WikiPage) -> list[Json]:
        """Return the blocks of a page."""
        cells = ["code", "reason", page.code, "expired"]
        table = {
            "cells": [f"c{n}" for n in range(4)],
            "property": {"row_size": 2, "column_size": 2},
        }
        top = ["h1", "t1", "h2", "table"]
        return [
            {"block_id": "root", "block_type": 1, "children": top, "page": feishu_text(page.title)},
            {"block_id": "h1", "block_type": 4, "heading2": feishu_text("Sending")},
            {"block_id": "t1", "block_type": 2, "text": feishu_text(page.text)},
            {"block_id": "h2", "block_type": 4, "heading2": feishu_text("Errors")},
            {"block_id": "table", "block_type": 31, "children": table["cells"], "table": table},
            *(
                {"block_id": f"c{n}", "block_type": 32, "children": [f"x{n}"], "table_cell": {}}
                for n in range(4)
            ),
            *(
                {"block_id": f"x{n}", "block_type": 2, "text": feishu_text(cells[n])}
                for n in range(4)
            ),
        ]


def _feishu_items(items: list[Json], request: Request, size: int) -> Reply:
    start = int(request.query.get("page_token", 0))
    end = start + size
    data = {"items": items[start:end], "has_more": end < len(items), "page_token": str(end)}
    return json_reply({"code": 0, "msg": "success", "data": data})


WIKIS: Mapping[str, type[Wiki]] = {
    "confluence": Confluence,
    "github": GitHub,
    "notion": Notion,
    "yuque": Yuque,
    "feishu": Feishu,
}
