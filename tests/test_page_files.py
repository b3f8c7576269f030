"""The files of the web page and their headers over HTTP."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.api.page import STATIC, contrast, dark_colours, light_colours
from app.service.answer_service import AnswerService
from ingestion.platform_config import read_platform
from prompts.user_text import user_text
from schemas.choices import LANGUAGES, Language
from schemas.errors import ConfigurationError
from tests.app_pool import AppPool
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


@pytest.fixture
def branded(
    sample_service: AnswerService, app_pool: AppPool, tmp_path: Path
) -> Iterator[TestClient[Litestar]]:
    """A client of a platform with a name per language, a logo, a colour and a link to its documentation."""
    (tmp_path / "acme.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    platform = tmp_path / "platform.toml"
    platform.write_text(BRANDED)
    config = read_platform(platform)
    service = AnswerService(sample_service.settings, config, sample_service.job)
    with app_pool.client(service) as client:
        yield client


BRANDED = """
[platform]
name = "极致云"
description = "云服务"
audience = "developers"
tone = "plain"
greeting = {zh = "您好。", en = "Hello."}
refusal = "No."
docs_url = "https://docs.acme.example/"
logo = "acme.svg"
accent = "#ffcc00"

[platform.names]
en = "Acme Cloud"

[platform.descriptions]
en = "Cloud services"

[[sources]]
name = "docs"
kind = "markdown"
path = "."
"""


def test_page_has_the_name_in_each_language_and_the_look_of_the_platform(
    branded: TestClient[Litestar],
) -> None:
    texts = read_module(branded, "/assets/js/text.js")["texts"]
    assert texts.keys() == set(LANGUAGES)
    assert texts["zh"]["platformName"] == "极致云"
    assert texts["en"]["platformName"] == "Acme Cloud"
    assert texts["en"]["platformDescription"] == "Cloud services"
    assert (texts["zh"]["greeting"], texts["en"]["greeting"]) == ("您好。", "Hello.")
    for path in ("/", "/embed"):
        page = branded.get(path).text
        assert '<img src="assets/logo.svg" alt="">' in page
        assert 'data-docs="https://docs.acme.example/"' in page
    logo = branded.get("/assets/logo.svg")
    assert logo.headers["content-type"].startswith("image/svg+xml")
    light = light_colours("#ffcc00").accent
    assert f"--accent: light-dark({light}, " in branded.get("/assets/css/accent.css").text
    assert f"background: {light};" in branded.get("/widget.js").text


@pytest.mark.parametrize(
    "accent", ["#ffcc00", "#000000", "#ffffff", "#ff0000", "#0b5d78", "#7a7a7a", "#00ff00"]
)
def test_text_in_the_accent_colour_is_readable(accent: str) -> None:
    light, dark = light_colours(accent), dark_colours(accent)
    assert contrast(light.accent, light.tint) >= 4.5
    assert contrast(light.accent, "#ffffff") >= 4.5
    assert contrast(dark.accent, dark.tint) >= 4.5
    assert contrast(dark.accent, "#0c2129") >= 4.5


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('logo = "none.svg"', "is not a file"),
        ('logo = "a.gif"', "must be a .svg, .png or .webp file"),
        ('accent = "red"', "platform.accent"),
        ('docs_url = "javascript:alert(1)"', "platform.docs_url"),
    ],
)
def test_invalid_look_is_a_configuration_error(tmp_path: Path, line: str, message: str) -> None:
    key = line.split(" = ")[0]
    platform = tmp_path / "platform.toml"
    (tmp_path / "acme.svg").touch()
    platform.write_text(re.sub(rf"(?m)^{key} = .*$", line, BRANDED))
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        read_platform(platform)


def test_files_contain_no_foreign_urls() -> None:
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
