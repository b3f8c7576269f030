"""A platform of Markdown guides with a schedule, its settings, and answers about a single page."""

import asyncio
from pathlib import Path

from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from schemas.answer import Answer
from schemas.settings import Settings, read_settings

PLATFORM = """
[platform]
name = "Acme"
description = "An API for shops."
audience = "developers"
tone = "dry"
greeting = "Hello."
refusal = "Not about Acme."

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"

[ingestion]
schedule = "30 2 * * *"
timezone = "Asia/Shanghai"
"""


def settings_of(folder: Path) -> Settings:
    return read_settings(
        milvus_uri=str(folder / "milvus.db"),
        database_url=f"sqlite:///{folder / 'apidesk.db'}",
        platform=folder / "platform.toml",
    )


def guides(settings: Settings) -> Path:
    return settings.platform.parent / "guides"


def ask(folder: Path, question: str) -> Answer:
    """Return the answer to `question` about the platform in `folder`."""

    async def answer() -> Answer:
        async with open_answer_service(settings_of(folder)) as answer_service:
            return await answer_service.ask(AskCommand(question))

    return asyncio.run(answer())


def quoted_page(folder: Path, page: str, question: str, source: str = "") -> str:
    """Return the answer to `question` about a platform with one page and, in TOML, another source."""
    (folder / "platform.toml").write_text(PLATFORM + source)
    (folder / "guides").mkdir()
    (folder / "guides" / "page.md").write_text(page)
    return "\n\n".join(ask(folder, question).answer)
