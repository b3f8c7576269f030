"""The files of the web page and their headers over HTTP."""

import json
import re
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.api.page import STATIC
from prompts.user_text import user_text
from schemas.choices import LANGUAGES, Language
from tests.model_replies import MakeClient


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/admin", "text/html"),
        ("/embed", "text/html"),
        ("/widget.js", "text/javascript"),
        ("/assets/js/main.js", "text/javascript"),
        ("/assets/js/text.js", "text/javascript"),
        ("/assets/css/base.css", "text/css"),
        ("/assets/icon.svg", "image/svg+xml"),
        ("/assets/vendor/markdown-it/markdown-it.esm.min.mjs", "text/javascript"),
        ("/assets/vendor/markdown-it/licenses/entities.txt", "text/plain"),
    ],
)
def test_unchanged_file_returns_304(client: TestClient[Litestar], path: str, kind: str) -> None:
    first = client.get(path)
    assert first.status_code == 200
    assert first.headers["content-type"].startswith(kind)
    assert first.headers["cache-control"] == "no-cache"
    again = client.get(path, headers={"If-None-Match": f'W/"x", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert client.get(path, headers={"If-None-Match": '"x"'}).content == first.content


@pytest.mark.parametrize("path", ["/", "/admin"])
def test_page_policy_allows_own_files_only(client: TestClient[Litestar], path: str) -> None:
    policy = client.get(path).headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not any("unsafe" in directive or "*" in directive for directive in policy)


def test_only_listed_sites_may_frame_the_widget_page(serve_samples: MakeClient) -> None:
    sites = ("https://docs.example.com", "https://*.example.org")
    client = serve_samples(embed_origins=sites)
    policy = client.get("/embed").headers["content-security-policy"]
    assert policy.endswith("frame-ancestors https://docs.example.com https://*.example.org")
    assert client.get("/").headers["content-security-policy"].endswith("frame-ancestors 'none'")
    refused = serve_samples().get("/embed").headers["content-security-policy"]
    assert refused.endswith("frame-ancestors 'none'")


@pytest.mark.parametrize(
    "path", ["../files.py", "..%2ffiles.py", "js/../../files.py", "/etc/passwd", "js", "", "none.js", "js/main.js%00"]
)  # fmt: skip
def test_other_paths_return_404(client: TestClient[Litestar], path: str) -> None:
    assert client.get(f"/assets/{path}").status_code == 404


def test_files_contain_no_foreign_urls(client: TestClient[Litestar]) -> None:
    """The only URLs are namespaces and examples in comments."""
    allowed = ("http://www.w3.org/2000/svg", "https://desk.example.com/")
    for file in STATIC.rglob("*.*"):
        if "vendor" not in file.parts:
            for address in re.findall(r"https?://[^\s\"'<>`]+", file.read_text()):
                assert address.startswith(allowed), (file.name, address)


def read_module(client: TestClient[Litestar], path: str) -> dict[str, Any]:
    """Return the exported values of a generated module by name."""
    exports = re.findall(r"^export const (\w+) = (.*?);$", client.get(path).text, re.M | re.S)
    return {name: json.loads(value) for name, value in exports}


def test_every_language_has_the_texts_that_the_scripts_use(client: TestClient[Litestar]) -> None:
    page = read_module(client, "/assets/js/text.js")
    admin = read_module(client, "/assets/js/admin/text.js")["texts"]
    files = [*STATIC.rglob("*.js"), *STATIC.glob("*.html")]
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    used = set(re.findall(r'\bt\("(\w+)"|data-(?:text|label)="(\w+)"', sources))
    names = {name for pair in used for name in pair if name}
    assert page["texts"].keys() == admin.keys() == set(LANGUAGES)
    for language in LANGUAGES:
        assert names <= page["texts"][language].keys() | admin[language].keys()
        assert set(page["footerFields"]) <= {*page["texts"][language], "type"}


def test_admin_texts_do_not_override_page_texts(client: TestClient[Litestar]) -> None:
    page = read_module(client, "/assets/js/text.js")["texts"]
    admin = read_module(client, "/assets/js/admin/text.js")["texts"]
    for language in LANGUAGES:
        assert not page[language].keys() & admin[language].keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_widget_has_its_label_in_every_language(
    client: TestClient[Litestar], language: Language
) -> None:
    (labels,) = re.findall(r"const labels = (.*);", client.get("/widget.js").text)
    assert json.loads(labels)[language] == user_text(language).page["widget"]
    assert user_text(language).page["noScript"] in client.get("/").text
