"""A drafted answer -> the Answer: only chunks that exist are cited, only their pages are linked."""

import re
import uuid

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.words import query_text, split_words
from runnables.state import Drafted, Understood
from runnables.steps import step
from schemas.answer import Answer, Confidence, Source
from schemas.document import RetrievedChunk
from schemas.platform import Voice

_CITATION = re.compile(r"`[^`]*`|\[(?P<number>\d{1,3})\]")


def build_ground(voice: Voice) -> Runnable[Drafted, Answer]:
    """The step `ground`."""

    async def ground(drafted: Drafted, config: RunnableConfig) -> Answer:
        chunks, draft, asked = drafted["chunks"], drafted["draft"], drafted["asked"]
        steps, cited = _renumbered([text for text in draft.answer if text.strip()], len(chunks))
        sources = [Source.of(i, chunks[n - 1]) for i, n in enumerate(cited, 1)]
        return Answer(
            id=uuid.uuid4().hex,
            question=draft.question or asked.text,
            introduction=draft.introduction or voice.say(voice.greeting, asked.language),
            answer=steps,
            related_url=_closed_links(draft.related_url, chunks, cited),
            type=drafted["structured"].type,
            structured=drafted["structured"],
            sources=sources,
            confidence=_confidence(draft.question, steps, sources),
            language=asked.language,
            answered_by=drafted["answered_by"],
        )

    return step("ground", ground)


def build_refuse(voice: Voice, answered_by: str) -> Runnable[Understood, Answer]:
    """The step `refuse`: what an off-topic question is told."""

    async def refuse(understood: Understood, config: RunnableConfig) -> Answer:
        asked = understood["asked"]
        return Answer(
            id=uuid.uuid4().hex,
            question=asked.text,
            introduction=voice.say(voice.greeting, asked.language),
            answer=[voice.say(voice.refusal, asked.language)],
            related_url=[],
            type="unknown",
            structured=understood["structured"],
            sources=[],
            confidence="high",
            language=asked.language,
            answered_by=answered_by,
        )

    return step("refuse", refuse)


def _renumbered(steps: list[str], count: int) -> tuple[list[str], list[int]]:
    """The steps with their citations numbered from 1 as they come, and the chunk numbers behind them.

    Citations that name no chunk go; brackets inside code spans are no citations.
    """
    cited: dict[int, int] = {}

    def renumber(match: re.Match[str]) -> str:
        if match["number"] is None:
            return match[0]
        number = int(match["number"])
        return f"[{cited.setdefault(number, len(cited) + 1)}]" if 1 <= number <= count else ""

    return [_CITATION.sub(renumber, text).strip() for text in steps], list(cited)


def _closed_links(urls: list[str], chunks: list[RetrievedChunk], cited: list[int]) -> list[str]:
    """The cited pages and those of `urls` that were retrieved, in the chunks' order."""
    if not cited:
        return []
    wanted = set(urls) | {chunks[n - 1].chunk.page_url for n in cited}
    pages = dict.fromkeys(r.chunk.page_url for r in chunks if r.chunk.page_url)
    return [page for page in pages if page in wanted]


def _confidence(question: str, steps: list[str], sources: list[Source]) -> Confidence:
    """By evidence, not by the model's own word.

    `low`: nothing is cited. `high`: every step is cited, and what is cited holds at least half of
    the question's telling words. `medium`: the rest.
    """
    if not sources:
        return "low"
    cited_steps = sum(any(m["number"] for m in _CITATION.finditer(text)) for text in steps)
    asked = set(split_words(query_text(question)))
    read = {word for s in sources for word in split_words(f"{s.title} {s.section} {s.text}")}
    covered = len(asked & read) >= len(asked) / 2
    return "high" if covered and cited_steps == len(steps) else "medium"
