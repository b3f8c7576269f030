"""A minimal platform of Markdown guides, for tests that write their own documents."""

from pathlib import Path

from schemas.platform import LocalizedText, PlatformInfo

PLATFORM = """
[platform]
name = "Acme Cloud"
description = "An API for storing documents: quotas, uploads, tokens, search, queues."
audience = "Developers."
tone = "Brief."
greeting = "Hello."
refusal = "Not about Acme."
language = "en"

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"
page_url = "https://acme.example/docs/{stem}"
"""
"""The guides are in the folder `guides` next to platform.toml."""

QUOTAS = "# Quotas\n\nEvery workspace may create {number} tokens. Ask support for more.\n"
"""A guide that states a number."""

PAGES = {
    "quotas": QUOTAS.format(number=20),
    "uploads": "# Uploads\n\nAn uploaded file may be 20 MB large. Larger files are cut into parts.\n",
    "search": "# Search\n\nA search query takes at most ten words and finds whole documents.\n",
}
"""Guides by the names of their files, without the suffix."""

PLATFORM_INFO = PlatformInfo(
    name="Acme",
    description="An API.",
    audience="devs",
    tone="dry",
    greeting=LocalizedText(en="Hi."),
    refusal=LocalizedText(en="No."),
    language="en",
)
"""What prompts say about a platform without a configuration file."""


def write_pages(folder: Path, **pages: str) -> None:
    """Write guides of the platform whose platform.toml is in `folder`."""
    for name, page in pages.items():
        (folder / "guides" / f"{name}.md").write_text(page)
