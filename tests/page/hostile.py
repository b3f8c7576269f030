"""Hostile strings, and a platform and an answer made of them."""

from pathlib import Path

from schemas.answer import Answer, Round
from schemas.answer import Page as DocumentPage
from schemas.question import StructuredQuestion
from tests.page.page_actions import made_answer, made_source

PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[link](javascript:alert(1))",
    "![image](https://evil.example/x.png)",
    '"><svg onload=alert(1)>',
)

HOSTILE = " ".join(PAYLOADS)


def hostile_answer() -> Answer:
    """Return an answer whose every string is hostile."""
    address = "javascript:alert(1)"
    structured = StructuredQuestion(
        type="general",
        api_name=HOSTILE,
        api_url=HOSTILE,
        request_param={HOSTILE: HOSTILE},
        response=HOSTILE,
        error=HOSTILE,
        search_terms=("<img src=x onerror=alert(1)>",),
        trace_id=HOSTILE,
    )
    return made_answer(
        f"{HOSTILE} [1]",
        id="../../x",
        introduction=HOSTILE,
        related_url=[address, HOSTILE],
        nearest=[DocumentPage(title=HOSTILE, page_url=address)],
        structured=structured,
        sources=[made_source(HOSTILE, HOSTILE, address)],
        unverified=["onerror=alert(1)", HOSTILE],
        answered_by=HOSTILE,
        degraded=HOSTILE,
        rounds=[Round(tool=HOSTILE, arguments={"a": HOSTILE}, results=1, milliseconds=1, error=HOSTILE)],
    )  # fmt: skip


def hostile_platform(folder: Path) -> Path:
    """Write a platform whose name and document are hostile."""
    page = f"---\ntitle: 'Kettle {PAYLOADS[0]}'\nurl: 'javascript:alert(1)'\n---\n"
    page += f"# Vinegar {PAYLOADS[0]}\n\nThe kettle needs vinegar. {HOSTILE}\n"
    (folder / "docs").mkdir()
    (folder / "docs" / "kettle.md").write_text(page)
    platform = folder / "platform.toml"
    platform.write_text(f"""
[platform]
name = "Kettles {PAYLOADS[0]}"
description = "Kettles, vinegar and {PAYLOADS[1]}"
audience = "cooks"
tone = "plain"
greeting = "Hello."
refusal = "Not about kettles."
language = "en"

[platform.names]
zh = "水壶"

[[sources]]
name = "docs"
kind = "markdown"
path = "docs"
page_url = "{{url}}"
""")
    return platform
