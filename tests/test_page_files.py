"""The files of the web page and their headers over HTTP."""

import re
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.api.page import STATIC
from tests.model_replies import MakeClient


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/admin", "text/html"),
        ("/embed", "text/html"),
        ("/widget.js", "text/javascript"),
        ("/assets/js/main.js", "text/javascript"),
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


@pytest.mark.parametrize("folder", ["js", "js/admin"])
def test_both_languages_have_the_same_texts(folder: str) -> None:
    texts_by_language = {
        language: texts(STATIC / folder / f"text.{language}.js") for language in ("en", "zh")
    }
    assert list(texts_by_language["en"]) == list(texts_by_language["zh"])
    for name, text in texts_by_language["en"].items():
        assert placeholders_in(text) == placeholders_in(texts_by_language["zh"][name]), name


def test_admin_texts_do_not_override_page_texts() -> None:
    assert not texts(STATIC / "js/text.en.js").keys() & texts(STATIC / "js/admin/text.en.js").keys()


def texts(file: Path) -> dict[str, str]:
    """Return the texts of a file by name, in order."""
    return dict(re.findall(r'^  (\w+): "(.*)",$', file.read_text(), re.MULTILINE))


def placeholders_in(text: str) -> set[str]:
    """Return the names of the placeholders."""
    return set(re.findall(r"\{(\w+)\}", text))
