"""Several versions of a documentation in one index."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from ingestion.sources.page_version import document_version, folder_version, is_deprecated
from ingestion.text.markdown_blocks import parse_blocks
from ingestion.text.version_names import asked_versions, parse_version, path_without_version
from tests.small_platform import PLATFORM, settings_of

SHIFT = """# Create a shift

`POST /{version}/shifts`

{remark}

## Body parameters

| Name | Type | Required | Description |
| --- | --- | --- | --- |
| `{name}` | string | Yes | The employee |
"""

SWAP = SHIFT.replace("Create a shift", "Swap two employees").replace("/shifts", "/swaps")

PAGES = {
    "v1/limits.md": "# Limits\n\n| Thing | Limit |\n| --- | --- |\n| File | 10 MB |\n| Requests | 30 |\n",
    "v2/limits.md": "# Limits\n\n## Sizes\n\nA file has at most 25 MB.\n",
    "next/limits.md": "# Limits\n\n## Sizes\n\nA file has at most 50 MB.\n",
    "v1/callbacks.md": "# Callbacks\n\nA callback that fails is sent 3 times. It is not signed with HMAC.\n",
    "v1/auth.md": "# Authentication\n\nSend the key in the URL. OAuth is not available.\n",
    "v2/auth.md": "# Authentication\n\n## OAuth\n\nUse OAuth 2.0 with PKCE to support other workspaces.\n",
    "v2/status.md": "# Status\n\n| Version | State |\n| --- | --- |\n| v2 | stable |\n| v1 | supported until June |\n",
    "v1/shifts.md": SHIFT.format(version="v1", name="employee", remark="> **Deprecated.** Use version 2."),
    "v2/shifts.md": SHIFT.format(version="v2", name="employee_id", remark=""),
    "v1/swap_v1.md": SWAP.format(version="v1", name="employees", remark=""),
    "v2/swap-new.md": SWAP.format(version="v2", name="employee_ids", remark=""),
    "v1/breaks.md": "# Rules\n\nA break takes 30 minutes.\n",
    "v2/payroll.md": "# Rules\n\nThe payroll closes on Friday.\n",
    "v2/export.md": "# Exports\n\nAn export is kept for 90 days.\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("platform")
    (folder / "platform.toml").write_text(PLATFORM)
    for name, text in PAGES.items():
        path = folder / "guides" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def service(folder: Path, runner: asyncio.Runner) -> Iterator[AnswerService]:
    context = open_answer_service(settings_of(folder))
    yield runner.run(context.__aenter__())
    runner.run(context.__aexit__(None, None, None))


@pytest.mark.parametrize(
    ("question", "first", "absent"),
    [
        pytest.param("What is the file size limit in v1?", "**Limits** (v1)", "MB.", id="old version"),
        pytest.param("What is the file size limit for version 1", "10 MB", "25 MB", id="in words"),
        pytest.param("v1 file limit", "**Limits** (v1)", "25 MB", id="keywords"),
        pytest.param("What is the file size limit in v3?", "**Limits > Sizes** (next)", "25 MB", id="next"),
        pytest.param("What is the file size limit?", "**Limits > Sizes** (v2)", "50 MB", id="newest"),
        pytest.param("v1 版本的文件大小限制 (file size limit)", "**Limits**（v1）", "25 MB", id="Chinese"),
        pytest.param("Does v1 support OAuth?", "OAuth is not available", "PKCE", id="opposite"),
        pytest.param("How often is a callback sent if it fails?", "3 times", "MB", id="only an old page"),
        pytest.param("How long is an export kept?", "**Exports**\n", "(v2)", id="only one version"),
        pytest.param("How do I create a shift?", "**Create a shift** (v2): `POST /v2/shifts`", "/v1/", id="API"),
        pytest.param("create a shift in v1", "**Create a shift** (v1, deprecated): `POST /v1/shifts`", "/v2/", id="old API"),
        pytest.param("Which parameters does POST /v1/shifts need?", "(v1, deprecated)", "/v2/", id="path"),
        pytest.param("How long does a break take?", "**Rules**\n", "(v1)", id="only the same title"),
        pytest.param("How do I swap two employees?", "**Swap two employees** (v2): `POST /v2/swaps`", "/v1/", id="renamed page"),
        pytest.param("swap two employees in v1", "**Swap two employees** (v1): `POST /v1/swaps`", "/v2/", id="renamed old page"),
        pytest.param("怎么用 v1 创建 shift (create a shift)", "（v1，已废弃）：`POST /v1/shifts`", "/v2/", id="old API, Chinese"),
    ],
)  # fmt: skip
def test_version_of_the_question_or_else_the_newest_is_quoted(
    service: AnswerService, runner: asyncio.Runner, question: str, first: str, absent: str
) -> None:
    answer = runner.run(service.ask(AskCommand(question)))
    assert first in answer.answer[0]
    assert absent not in "\n".join(answer.answer)


def test_comparison_quotes_both_versions(service: AnswerService, runner: asyncio.Runner) -> None:
    question = "What is the difference in file limits between v1 and v2?"
    text = "\n".join(runner.run(service.ask(AskCommand(question))).answer)
    assert "10 MB" in text
    assert "25 MB" in text
    assert "50 MB" not in text


def test_version_is_metadata(service: AnswerService, runner: asyncio.Runner) -> None:
    source = runner.run(service.ask(AskCommand("create a shift in v1"))).sources[0]
    assert source.metadata == {"version": "v1", "deprecated": "true"}


@pytest.mark.parametrize(
    ("document_id", "url", "folder", "api_url", "version"),
    [
        ("v1/limits", "", "docs", "", "v1"),
        ("limits", "https://docs.example.com/v2.3/limits#sizes", "docs", "", "v2.3"),
        ("limits", "", "versioned_docs/version-2.x", "", "2.x"),
        ("limits", "", "docs", "/v2/limits", "v2"),
        ("next/limits", "", "docs", "/v2/limits", "next"),
        ("changelog/v1.2", "", "docs", "", ""),
        ("2026/limits", "https://v2.example.com/limits", "docs", "", ""),
    ],
)
def test_version_of_a_document(
    document_id: str, url: str, folder: str, api_url: str, version: str
) -> None:
    assert document_version(document_id, url, Path(folder), "guides", api_url) == version


def test_docs_of_docusaurus_are_unreleased_beside_versioned_docs(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert folder_version(tmp_path / "docs") == ""
    (tmp_path / "versioned_docs").mkdir()
    assert folder_version(tmp_path / "docs") == "next"


@pytest.mark.parametrize(
    ("question", "versions"),
    [
        ("limits in v1", {"v1"}),
        ("limits in version 2", {"2.x"}),
        ("limits for 2.x", {"2.x"}),
        ("版本 1 的限制", {"v1"}),
        ("2.0 版的限制", {"2.x"}),
        ("from v1 to v2", {"v1", "2.x"}),
        ("recipients in v3", {"next"}),
        ("call /v1/shifts", {"v1"}),
        ("does it use TLS 1.2", set()),
        ("Node v18", set()),
        ("limits", set()),
    ],
)
def test_versions_that_a_question_names(question: str, versions: set[str]) -> None:
    assert asked_versions(question, ["v1", "2.x", "next"]).keys() == versions


def test_order_of_versions() -> None:
    names = ["", "v2", "next", "1.10", "v2beta1", "1.9"]
    assert sorted(names, key=parse_version) == ["next", "v2beta1", "1.9", "1.10", "v2", ""]


def test_versions_share_a_path() -> None:
    assert path_without_version("docs/v1/limits") == path_without_version("docs/version-2.x/limits")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("# Ship\n\n> **Deprecated.** Use v2.", True),
        ("# Ship\n\n**Warning**\n\nThis endpoint is deprecated.", True),
        ("# Ship (deprecated)\n\nShips an order.", True),
        ("# 发货\n\n> 该接口已废弃。", True),
        ("# Berths\n\nThe Berths API deprecates the old Piers API.", False),
        ("# Keys\n\n**Acme 2.1 deprecates the legacy keys of 2.0.**", False),
        ("# Ship\n\nThe call that deprecates the order must be signed.", False),
        ("# Ship\n\nDeprecated parameters are listed below.", False),
        ("# Ship\n\n## Old fields\n\nDeprecated.", False),
        ("# Ship\n\nShips an order.", False),
    ],
)
def test_deprecated_page(page: str, expected: bool) -> None:
    assert is_deprecated(list(parse_blocks(page)), title_level=1) is expected
