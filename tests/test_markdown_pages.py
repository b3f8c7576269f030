"""Markdown pages: headings, front matter, page URLs and file names."""

import re
from pathlib import Path

import pytest

from schemas.document import SourceDocument
from tests.source_kinds import GUIDE, KINDS, read, read_results, split_results, write


def read_page(
    folder: Path, text: str, name: str = "signing.md", **fields: object
) -> SourceDocument:
    write(folder / name, text)
    (document,) = read(KINDS["markdown"].make, folder, **fields)
    return document


def test_page_has_a_section_per_heading_with_a_body(tmp_path: Path) -> None:
    document = read_page(tmp_path, GUIDE)
    assert [(section.heading, section.body) for section in document.sections] == [
        ((), "Intro."),
        (("Steps",), "1. Sort."),
        (("Steps", "Example"), "```python\nsign()\n```"),
        (("Errors",), "isv.invalid-signature"),
    ]
    assert {section.kind for section in document.sections} == {"prose"}
    assert document.language == "en"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_page_with_a_byte_order_mark_is_read(tmp_path: Path, encoding: str) -> None:
    text = GUIDE if encoding != "utf-16-be" else f"\ufeff{GUIDE}"
    expected = read_page(tmp_path, GUIDE)
    (tmp_path / "signing.md").write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert read(KINDS["markdown"].make, tmp_path) == [expected]


def test_heading_path_follows_the_levels(tmp_path: Path) -> None:
    text = "# Page\n\n### deep\n\na\n\n## up\n\nb\n\n#### down\n\nc\n\n#\n\nd\n\n# out\n\ne"
    document = read_page(tmp_path, text)
    assert [section.heading for section in document.sections] == [
        ("deep",), ("up",), ("up", "down"), (), ("out",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("---\ntitle: Front\n---\n# Heading\n\ntext", "title", "Front"),
        ("---\nname: Front\n---\n# Heading\n\ntext", "name", "Front"),
        ("---\nname: Front\n---\n# Heading\n\ntext", "title", "Heading"),
        ("---\ntitle: ''\n---\n## `code` **heading**\n\ntext", "title", "code heading"),
        ("---\ntitle: 2026\n---\ntext", "title", "2026"),
        ("---\n---\ntext", "title", "Signing"),
        ("text", "title", "Signing"),
        ("---\ntitle: never closed\n\ntext", "title", "Signing"),
        ("text\n\n---\ntitle: no front matter\n---\n", "title", "title: no front matter"),
    ],
)
def test_page_title(tmp_path: Path, text: str, key: str, expected: str) -> None:
    assert read_page(tmp_path, text, title=key).title == expected


def test_entities_in_headings_are_decoded(tmp_path: Path) -> None:
    document = read_page(tmp_path, "# Keys &amp; tokens\n\ntext\n\n## Q &amp; A\n\ntext")
    assert document.title == "Keys & tokens"
    assert [section.heading for section in document.sections] == [(), ("Q & A",)]


def test_metadata_is_read_from_the_configured_keys(tmp_path: Path) -> None:
    wanted = {"topic": "category", "date": "updated", "v": "version", "d": "draft", "no": "nothing"}
    document = read_page(tmp_path, GUIDE, metadata=wanted)
    assert document.metadata == {"topic": "security", "date": "2026-01-31", "v": "1.0"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{url}", "https://docs.example.com/signing"),
        ("https://x.y/{path}.html", "https://x.y/guides/v1.2/signing.html"),
        ("https://x.y/{stem}", "https://x.y/signing"),
        ("https://x.y/{category}/{stem}#{updated}", "https://x.y/security/signing#2026-01-31"),
        ("https://x.y/{draft}", ""),
        ("{missing}", ""),
    ],
)
def test_page_url_is_filled_from_page_values(tmp_path: Path, template: str, expected: str) -> None:
    document = read_page(tmp_path, GUIDE, "guides/v1.2/signing.md", page_url=template)
    assert document.page_url == expected
    assert document.id == "guides/v1.2/signing"


def test_mdx_is_read_as_markdown(tmp_path: Path) -> None:
    text = "import Tabs from '@tabs'\n\n# Page\n\n<Tabs>\n\n{/* note */}\n\nText.\n\n</Tabs>"
    document = read_page(tmp_path, text, "page.mdx")
    assert (document.id, document.title) == ("page", "Page")
    assert "Text." in document.sections[-1].body


@pytest.mark.parametrize(
    "empty",
    ["", "\n\n", "---\ntitle: a\n---\n", "# only\n\n## headings", "\ufeff"],
    ids=["nothing", "blank", "front matter", "headings", "BOM"],
)
def test_pages_without_a_body_are_skipped(tmp_path: Path, empty: str) -> None:
    write(tmp_path / "empty.md", empty)
    assert read_page(tmp_path, "text").id == "signing"


@pytest.mark.parametrize(
    ("text", "title", "metadata", "body"),
    [
        ("+++\ntitle = 'Toml'\ntags = ['a', 'b']\n+++\ntext", "Toml", {"tags": "a, b"}, "text"),
        ("---\ntitle: Yaml\ntags: [a, 2, true]\n---\ntext", "Yaml", {"tags": "a, 2, True"}, "text"),
        ("---\ntags:\n- a\n- [b]\n- {c: d}\n---\ntext", "Post", {"tags": "a"}, "text"),
        ("---\ntags: {a: b}\n---\ntext", "Post", {}, "text"),
        ("---\ntags: []\n---\ntext", "Post", {}, "text"),
        ("---\n\nA line drawn.\n\n---\n\ntext", "Post", {}, "---\n\nA line drawn.\n\n---\n\ntext"),
        ("---\n- a\n- b\n---\n\ntext", "Post", {}, "---\n\n- a\n- b\n\n---\n\ntext"),
        ("+++\ntitle = 'Open'\ntext", "Post", {}, "+++\ntitle = 'Open'\ntext"),
        ("tags:\n- a\n- b\ntitle: Hexo\n---\ntext", "Hexo", {"tags": "a, b"}, "text"),
        ("Note: a heading\n---\ntext", "Note: a heading", {}, "text"),
    ],
    ids=[
        "TOML",
        "YAML",
        "nested",
        "table",
        "empty",
        "lines",
        "list",
        "never closed",
        "unopened",
        "heading",
    ],
)
def test_front_matter_formats(
    tmp_path: Path, text: str, title: str, metadata: dict[str, str], body: str
) -> None:
    document = read_page(tmp_path, text, "post.md", metadata={"tags": "tags"})
    assert (document.title, document.metadata) == (title, metadata)
    assert "\n\n".join(section.body for section in document.sections).endswith(body)


def test_invalid_toml_front_matter_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "+++\ntitle =\n+++\ntext")
    _, (refused,) = split_results(read_results(KINDS["markdown"].make, tmp_path))
    assert refused.startswith("a.md: front matter: Invalid value")


@pytest.mark.parametrize(
    ("draft", "is_read"),
    [("true", False), ("'yes'", False), ("1", False), ("false", True), ("'no'", True), ("0", True)],
)
def test_drafts_are_skipped(tmp_path: Path, draft: str, is_read: bool) -> None:
    write(tmp_path / "a.md", f"+++\ndraft = {draft}\n+++\ntext")
    write(tmp_path / "b.md", "text")
    documents = read(KINDS["markdown"].make, tmp_path, skip=("hidden", "draft"))
    assert [document.id for document in documents] == (["a", "b"] if is_read else ["b"])


def test_file_name_pattern_sets_values_and_filters_files(tmp_path: Path) -> None:
    for name in ("2024-05-06-tides", "about"):
        write(tmp_path / f"{name}.md", "text")
    (document,) = read(
        KINDS["markdown"].make, tmp_path,
        file_name=re.compile(r"^(?P<date>[\d-]{10})-(?P<slug>.+)"),
        page_url="https://blog.example/{date}/{slug}", metadata={"date": "date"}, title="slug",
    )  # fmt: skip
    assert (document.id, document.title) == ("2024-05-06-tides", "tides")
    assert document.page_url == "https://blog.example/2024-05-06/tides"
    assert document.metadata == {"date": "2024-05-06"}


BLOG = ["https://blog.example{url}", "https://blog.example/{page_path}/"]


@pytest.mark.parametrize(
    ("name", "front", "templates", "expected"),
    [
        ("posts/tides.md", "+++\nurl = '/tides/'\n+++\n", BLOG, "https://blog.example/tides/"),
        ("posts/tides.md", "", BLOG, "https://blog.example/posts/tides/"),
        ("posts/tides/index.md", "", BLOG, "https://blog.example/posts/tides/"),
        ("posts/_index.md", "", BLOG, "https://blog.example/posts/"),
        ("posts/README.md", "", BLOG, "https://blog.example/posts/"),
        ("posts/tides/index.md", "", ["https://x.y/{path}"], "https://x.y/posts/tides/index"),
        ("high tide/潮汐.md", "", ["https://x.y/{path}"], "https://x.y/high%20tide/%E6%BD%AE%E6%B1%90"),
        ("high tide/潮汐.md", "", ["https://x.y/{stem}"], "https://x.y/%E6%BD%AE%E6%B1%90"),
        ("high tide/index.md", "", ["https://x.y/{page_path}/"], "https://x.y/high%20tide/"),
        ("a.mdx", "", ["https://x.y/{path}{suffix}"], "https://x.y/a.mdx"),
        ("a.md", "", ["{url}", "{link}"], ""),
        ("a.md", "---\nurl: 'javascript:alert(1)'\n---\n", ["{url}", "https://x.y/{path}"], "https://x.y/a"),
        ("a.md", '---\nurl: "java\\nscript:1"\n---\n', ["{url}", "https://x.y/{path}"], "https://x.y/a"),
        ("a.md", '---\nurl: "\\x01javascript:1"\n---\n', ["{url}", "https://x.y/{path}"], "https://x.y/a"),
        ("a.md", "---\nurl: x.y:80/b\n---\n", ["{url}", "https://x.y/{path}"], "x.y:80/b"),
        ("a.md", "---\nurl: /guides/a\n---\n", ["{url}", "https://x.y/{path}"], "/guides/a"),
    ],
)  # fmt: skip
def test_first_complete_page_url_is_used(
    tmp_path: Path, name: str, front: str, templates: list[str], expected: str
) -> None:
    assert read_page(tmp_path, f"{front}text", name, page_url=templates).page_url == expected


def test_nested_yaml_aliases_in_front_matter_are_cheap(tmp_path: Path) -> None:
    laughs = "\n".join(
        [
            "a0: &a0 [ha, ha]",
            *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)),
        ]
    )
    text = f"---\n{laughs}\ntitle: Laughs\n---\ntext"
    document = read_page(tmp_path, text, metadata={"few": "a0", "many": "a11"})
    assert document.metadata == {"few": "ha, ha"}


def test_links_with_definitions_are_links(tmp_path: Path) -> None:
    text = (
        "# Uploads\n\nSend a [token][tokens] with the [key], see [faq][] and [old][gone].\n\n"
        "```\n[key]: in code\nx[key][0]\n```\n\n"
        '[tokens]: https://docs.example.com/tokens "Tokens"\n[key]: https://docs.example.com/key\n'
        "[FAQ]: <https://docs.example.com/faq>\n\n[^1]: https://notes.example.com\n"
    )
    (section,) = read_page(tmp_path, text).sections
    assert section.body == (
        "Send a [token](https://docs.example.com/tokens) with the [key](https://docs.example.com/key), "
        "see [faq](https://docs.example.com/faq) and [old][gone].\n\n"
        "```\n[key]: in code\nx[key][0]\n```\n\n[^1]: https://notes.example.com"
    )


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("import-messages", "## Overview\n\nIt imports.\n\n## Call\n\nPOST.", "Import messages"),
        ("index", "## Overview\n\nIt imports.\n", "Overview"),
        ("import-messages", "# Overview\n\nIt imports.\n", "Overview"),
        ("import-messages", "## Imports\n\nIt imports.\n", "Imports"),
    ],
)
def test_general_heading_is_no_title(name: str, text: str, title: str, tmp_path: Path) -> None:
    assert read_page(tmp_path, text, f"{name}.md").title == title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("_webhook_signature", "Webhook signature"),
        ("import-messages", "Import messages"),
        ("FAQ", "FAQ"),
        ("_支付_说明", "_支付_说明"),
        ("v2.0", "v2.0"),
        ("v2_1", "v2_1"),
        ("2024-05-01", "2024-05-01"),
        ("order.create", "order.create"),
        ("createOrder", "createOrder"),
        ("__", "__"),
    ],
)
def test_file_name_becomes_a_readable_title(name: str, title: str, tmp_path: Path) -> None:
    document = read_page(tmp_path, "text", f"{name}.md")
    assert (document.id, document.title) == (name, title)


@pytest.mark.parametrize("name", ["_sidebar.md", "_navbar.md", "zh/_coverpage.md"])
def test_navigation_of_docsify_is_not_read(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "* [Orders](orders.md)\n")
    assert [read_page(tmp_path, GUIDE).id] == ["signing"]


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("# Summary\n\n* [Intro](README.md)\n  * [Keys](keys.md)\n\n## Part\n\n1. [End](end.md)\n", False),
        ("# Summary\n\n[Intro](README.md)\n\n---\n\n- [Keys](<a b.md>)\n", False),
        ("# Summary\n\n* [Keys](keys.md)\n* They expire after a day.\n", True),
        ("# Summary\n\nThis release adds keys.\n\n* [Keys](keys.md)\n", True),
    ],
)  # fmt: skip
def test_summary_with_only_links_is_not_read(text: str, is_read: bool, tmp_path: Path) -> None:
    write(tmp_path / "signing.md", GUIDE)
    write(tmp_path / "SUMMARY.md", text)
    ids = [document.id for document in read(KINDS["markdown"].make, tmp_path)]
    assert ids == (["SUMMARY", "signing"] if is_read else ["signing"])


def test_code_does_not_decide_the_language(tmp_path: Path) -> None:
    code = "```python\n" + "response = client.delete(signature_id)\n" * 30 + "```\n"
    assert read_page(tmp_path, f"# 删除签名\n\n删除短信签名。\n\n{code}").language == "zh"
