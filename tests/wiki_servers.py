"""Wikis on loopback that speak the wire formats of the real ones, and how each is configured as a source."""

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
    """A page with a paragraph below a heading, and a table below a second one."""

    title: str
    text: str
    code: str = "20001"


@dataclass
class Wiki(ScriptedServer):
    """A wiki whose pages have ids; subclasses render them."""

    pages: dict[str, WikiPage] = field(default_factory=dict)
    content_path = ""
    """Part of the paths that only requests for content have."""

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
            "loader": "ingestion.loaders.confluence.ConfluenceHtmlLoader",
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


WIKIS: Mapping[str, type[Wiki]] = {"confluence": Confluence, "github": GitHub}
