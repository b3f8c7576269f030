"""Translation of questions, if a few pages are in another language than all others."""

import asyncio
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from runnables.question.query_analysis import main_languages
from schemas.answer import Answer
from schemas.document import Chunk
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import open_collection, write
from tests.small_platform import PLATFORM, guides, settings_of

AVATAR = """
# 个人资料

在设置页面点击头像，选择一张新图片，即可替换。图片不能超过 2 MB。
"""

PAGES = {
    "avatar": AVATAR,
    "notes": "# Release notes\n\nFixed a crash on startup. The app can replace its cache.",
    **{f"page{i}": f"# 第 {i} 章\n\n本章介绍第 {i} 个功能的用法和注意事项。" for i in range(20)},
}


def notes(language: str, count: int) -> list[Chunk]:
    """Return the chunks of `count` pages with release notes."""
    text = {"en": "Fixed a memory leak.", "zh": "修复内存泄漏。"}[language]
    pages = (page(f"{language}{i}", f"{text} {i}", language=language) for i in range(count))
    return [chunk for chunks in pages for chunk in chunks]


@pytest.mark.parametrize(
    ("chinese", "english", "expected"),
    [
        (30, 0, {"zh"}),
        (30, 2, {"zh"}),
        (2, 30, {"en"}),
        (20, 10, {"zh", "en"}),
        (1, 1, {"zh", "en"}),
    ],
)
def test_few_pages_do_not_make_a_main_language(
    tmp_path: Path, chinese: int, english: int, expected: set[str]
) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "m.db")), "embedded")
    write(collection, [*notes("zh", chinese), *notes("en", english)])
    assert main_languages(collection) == expected
    collection.close()


def test_question_in_the_language_of_a_few_pages_is_translated(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    settings = settings_of(tmp_path)
    guides(settings).mkdir()
    for name, text in PAGES.items():
        (guides(settings) / f"{name}.md").write_text(text)

    async def answer() -> Answer:
        async with open_answer_service(settings) as service:
            return await service.ask(AskCommand("how do I replace my avatar?"))

    assert "选择一张新图片" in "\n".join(asyncio.run(answer()).answer)
