"""A minimal platform of Markdown guides, for tests that write their own documents."""

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
