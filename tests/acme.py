"""A platform of Markdown guides, as small as can be, for tests that write their own documents."""

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
"""The guides lie in `guides` beside it."""
