"""Markdown files that MDX pages import are inserted; partials are no pages."""

from pathlib import Path

import pytest

from ingestion.platform_config import read_platform
from ingestion.sources import mdx_imports
from ingestion.sources.markdown import READER
from ingestion.sources.registry import digest_source, read_source
from schemas.platform import MarkdownSourceConfig, SourceLimits
from schemas.settings import SAMPLE_PLATFORM
from tests.source_kinds import KINDS, read, split_results, write

PAGE = """import Note from './_parts/_note.mdx';
import Card from "@site/docs/_parts/card.md"
import Secret from '../secret.md'
import Tabs from '@theme/Tabs'

# Start

Hi.

<Note />

<Tabs>
  <Tab title="Sandbox">
    <Card kind="test"></Card>
  </Tab>
</Tabs>

Mind <Card/> and <Secret />.

```jsx
<Note />
```
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of MDX pages with partials."""
    folder = tmp_path / "docs"
    write(tmp_path / "secret.md", "A secret.")
    write(folder / "start.mdx", PAGE)
    write(
        folder / "_parts" / "_note.mdx",
        "---\ntitle: x\n---\nimport Start from '../start.mdx'\n\nSee [Keys](../keys.md), [top](#top).\n\n<Start />",
    )
    write(folder / "_parts" / "card.md", "The card `4242`.")
    write(folder / "keys.md", "# Keys\n\nA key.")
    return folder


def ids(folder: Path) -> list[str]:
    return [document.id for document in read(KINDS["markdown"].make, folder)]


def test_imported_files_are_inserted(docs: Path) -> None:
    documents = read(KINDS["markdown"].make, docs, page_url="https://x.y/{path}")
    body = next(each for each in documents if each.id == "start").sections[0].body
    assert body.split("\n\n") == [
        "Hi.",
        "See [Keys](https://x.y/keys), [top](https://x.y/start#top).",
        "**Sandbox**",
        "The card `4242`.",
        "Mind The card `4242`. and .",
        "```jsx\n<Note />\n```",
    ]


def test_inserted_text_is_limited(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdx_imports, "MAX_INSERTED_CHARS", 16)
    documents = {each.id: each for each in read(KINDS["markdown"].make, docs)}
    body = documents["start"].sections[0].body
    assert body.count("4242") == 1
    assert "Keys" not in body


def test_page_is_read_again_after_a_change_of_an_imported_file(docs: Path) -> None:
    source = MarkdownSourceConfig(name="docs", kind="markdown", path=docs)
    before = digest_source(source, SourceLimits())
    write(docs / "_parts" / "card.md", "The card `5555`.")
    assert digest_source(source, SourceLimits()) != before


def test_partials_are_no_pages(docs: Path) -> None:
    assert ids(docs) == ["keys", "start"]
    assert READER.count_files(MarkdownSourceConfig(name="a", kind="markdown", path=docs)) == 2


def test_files_that_are_not_imported_are_pages(docs: Path) -> None:
    write(docs / "_errors.md", "# Errors\n\nA.")
    write(docs / "_index.md", "# Home\n\nA.")
    assert ids(docs) == ["_errors", "_index", "keys", "start"]
    write(docs.parent / "docusaurus.config.ts", "")
    assert ids(docs) == ["_index", "keys", "start"]


def test_included_files_are_inserted_and_are_no_pages(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    write(
        folder / "api" / "boats.mdx",
        "# Boats\n\n@include 'limits.mdx'\n\n- a\n  @include \"x.mdx\"",
    )
    write(folder / "partials" / "limits.mdx", "Ten boats.\n\n@include 'boats/size.mdx'")
    write(folder / "partials" / "boats" / "size.mdx", "Up to 12 m.")
    write(folder / "partials" / "unused.mdx", "Unused.")
    (boats,) = read(KINDS["markdown"].make, folder)
    assert boats.sections[0].body.split("\n\n") == [
        "Ten boats.",
        "Up to 12 m.",
        '- a\n  @include "x.mdx"',
    ]


def test_include_line_that_cannot_be_inserted_stays(tmp_path: Path) -> None:
    """The names of components that the page imports do not affect its `@include` lines."""
    folder = tmp_path / "docs"
    write(folder / "partials" / "limits.mdx", "Ten boats.\n\n@include 'limits.mdx'")
    write(folder / "_note.mdx", "Mind the tide.")
    write(
        folder / "boats.mdx",
        "import Include1 from './_note.mdx'\n\n# Boats\n\n<Include1 />\n\n"
        "- a\n\n  @include 'limits.mdx'\n\n<Include0 />\n\n@include 'boats.mdx'",
    )
    (boats,) = read(KINDS["markdown"].make, folder)
    assert [part for part in boats.sections[0].body.split("\n\n") if part.strip()] == [
        "Mind the tide.",
        "- a",
        "  Ten boats.",
        "  @include 'limits.mdx'",
        "@include 'boats.mdx'",
    ]


def test_relative_source_path_finds_included_and_linked_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of the source may be relative and contain `..`."""
    write(tmp_path / "docs" / "boats.mdx", "# Boats\n\n@include 'limits.mdx'\n\n[Keys](keys.md)")
    write(tmp_path / "docs" / "keys.md", "# Keys\n\nA key.")
    write(tmp_path / "docs" / "partials" / "limits.mdx", "Ten boats.")
    samples = SAMPLE_PLATFORM.read_text(encoding="utf-8").partition("[[sources]]")[0]
    write(
        tmp_path / "settings" / "platform.toml",
        f'{samples}[[sources]]\nname = "docs"\nkind = "markdown"\npath = "../docs"\n'
        'page_url = "https://acme.dev/{path}"\n',
    )
    monkeypatch.chdir(tmp_path)
    (source,) = read_platform(Path("settings/platform.toml")).sources
    (boats, _), _ = split_results(list(read_source(source, SourceLimits())))
    assert boats.sections[0].body.split("\n\n") == ["Ten boats.", "[Keys](https://acme.dev/keys)"]


def test_folder_named_partials_has_pages_if_none_is_included(tmp_path: Path) -> None:
    write(tmp_path / "partials" / "a.mdx", "A page.")
    assert ids(tmp_path) == ["partials/a"]


def test_import_line_without_a_file_stays_in_a_page_that_mentions_include(tmp_path: Path) -> None:
    line = "import Gone from './gone.mdx'"
    write(tmp_path / "a.mdx", f"# Parts\n\n{line}\n\nWrite `@include` in a page.")
    text = mdx_imports.insert_imports(tmp_path / "a.mdx", tmp_path, Path.read_text)
    assert line in text


def test_source_path_beside_the_target_of_a_linked_folder_is_found(tmp_path: Path) -> None:
    """`..` in the path leads out of the folder to which the link points."""
    (tmp_path / "releases" / "shared" / "docs").mkdir(parents=True)
    samples = SAMPLE_PLATFORM.read_text(encoding="utf-8").partition("[[sources]]")[0]
    write(
        tmp_path / "releases" / "42" / "platform.toml",
        f'{samples}[[sources]]\nname = "docs"\nkind = "markdown"\npath = "../shared/docs"\n',
    )
    (tmp_path / "current").symlink_to(tmp_path / "releases" / "42")
    (source,) = read_platform(tmp_path / "current" / "platform.toml").sources
    assert source.path == (tmp_path / "releases" / "shared" / "docs").resolve()
