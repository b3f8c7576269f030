"""A platform of Markdown guides with a schedule, and its settings."""

from pathlib import Path

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
