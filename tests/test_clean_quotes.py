"""Answers quote pages without the markup that their authors wrote."""

import asyncio
import re
from pathlib import Path

import pytest

from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from tests.acme import PLATFORM
from tests.conftest import ServiceFactory

SUBJECTS = ["upload", "quota", "token", "webhook", "queue", "search", "export", "backup", "signature", "region"]  # fmt: skip
ACTIONS = ["limits", "retries", "timeouts"]

PAGE = """---
title: {subject} {action}
description: What the {subject} {action} &amp; their fields  mean.
---
# {subject} {action}

## How to set {subject} {action}

:::note Mind
{subject} {action} allow &gt;&nbsp;{n} calls in us\\-east\\-{n}, `max\\_x`  and ==nothing else==.
:::

## Why {subject} {action} matter

> [!WARNING]
> The {action} of user\\_{subject}  are <b>required</b>&nbsp;here, see [limits](missing.md) <!-- hidden -->.

<Accordion title="Is `{subject}` needed?">
The {subject} {action} are needed&#160;once.
</Accordion>

## Fields of {subject} {action}

| Field | Text |
| --- | --- |
| {subject}\\_{action} | The {action}<br/>of {subject} <ul><li>x&nbsp;y</li></ul> |

<table><tr><th>{action}</th><th>Value</th></tr><tr><td><code>k_{n}</code>  is {subject}</td>
<td><p>a &lt; b</p><table><tr><td>in <i>{n}</i></td><td>two</td></tr></table></td></tr></table>
"""
QUESTIONS = [
    question.format(subject=subject, action=action)
    for subject in SUBJECTS
    for action in ACTIONS
    for question in (
        "How to set {subject} {action}?",
        "How many calls do the {subject} {action} allow?",
        "Why do {subject} {action} matter?",
        "Which permission do the {action} of user_{subject} need?",
        "Is `{subject}` needed for {action}?",
        "Are the {subject} {action} needed?",
        "What are the fields of {subject} {action}?",
        "What does the field {subject}_{action} mean?",
        "What do the {subject} {action} mean?",
        "{subject} {action}",
    )
]
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LEAK = re.compile(
    r"&(?:nbsp|gt|lt|amp|#160);|\\[-_]|:::|\[!|==|</?[a-zA-Z][^>\n]*>|(?<=[^\s|])[ \t\u00a0]{2,}(?=[^\s|])"
)


@pytest.fixture(scope="module")
def service(
    make_service: ServiceFactory, tmp_path_factory: pytest.TempPathFactory
) -> AnswerService:
    folder = tmp_path_factory.mktemp("dirty")
    (folder / "platform.toml").write_text(PLATFORM, encoding="utf-8")
    (folder / "guides").mkdir()
    for n, (subject, action) in enumerate((s, a) for s in SUBJECTS for a in ACTIONS):
        page = PAGE.replace("{subject}", subject).replace("{action}", action)
        path: Path = folder / "guides" / f"{n}.mdx"
        path.write_text(page.replace("{n}", str(n)), encoding="utf-8")
    return make_service(platform=folder / "platform.toml")


@pytest.mark.acceptance
def test_300_quoted_answers_contain_no_markup(service: AnswerService) -> None:
    async def ask_all() -> list[str]:
        answers = [await service.ask(AskCommand(question)) for question in QUESTIONS]
        return ["\n".join(answer.answer) for answer in answers]

    texts = asyncio.run(ask_all())
    assert len(texts) == 300
    assert sum("[1]" in text for text in texts) >= 290
    assert [text for text in texts if LEAK.search(CODE.sub("CODE", text))] == []


def test_interval_in_a_quote_is_not_a_citation(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM, encoding="utf-8")
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "ranker.md").write_text(
        "# Ranker\n\n## Normalisation of scores\n\n"
        "The ranker normalises scores to the range [0,1] or to levels [1-3] with arctan.\n",
        encoding="utf-8",
    )
    service = make_service(platform=tmp_path / "platform.toml")

    answer = asyncio.run(service.ask(AskCommand("How does the ranker normalise scores?")))

    assert "the range [0,1] or to levels [1-3] with arctan. [1]" in answer.answer[0]
