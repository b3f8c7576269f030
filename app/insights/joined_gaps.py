"""Gaps with the help of a chat model: it joins what words alone keep apart, and names it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig

from app.insights.gaps import SMALLEST, DetectedGap, GapQuestion, gaps_of, group_suspects
from app.insights.grouping import TextGroup
from app.insights.terms import WordShares
from runnables.question.same_topic import QuestionGrouper
from runnables.retrieval.glossary import Glossary
from schemas.topics import QuestionGroup


async def find_joined_gaps(
    questions: Sequence[GapQuestion],
    same_topic: QuestionGrouper | None,
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
    smallest: int = SMALLEST,
    config: RunnableConfig | None = None,
) -> list[DetectedGap]:
    """As `find_gaps`, after one call of a model that joins and names groups.

    Without `same_topic`, or where its model fails, the groups are those that words make.
    """
    groups = await asyncio.to_thread(
        group_suspects, questions, vectors, documented=documented, glossary=glossary
    )
    if same_topic:
        groups.sort(key=lambda each: _is_refused(each, questions))  # stable: the largest stay first
        topics = await same_topic.topics([_wordings(each, questions) for each in groups], config)
        groups = join(groups, topics)
    return gaps_of(groups, questions, documented=documented, smallest=smallest)


def join(groups: Sequence[TextGroup], topics: Sequence[QuestionGroup]) -> list[TextGroup]:
    """`groups`, joined and named as `topics` say, whose numbers count `groups` from 1, each once."""
    named = {number for topic in topics for number in topic.groups}
    rest = [each for number, each in enumerate(groups, 1) if number not in named]
    return [_joined([groups[n - 1] for n in topic.groups], topic.name) for topic in topics] + rest


def _joined(parts: Sequence[TextGroup], name: str) -> TextGroup:
    """One group of all `parts`. A word of a single question is not one that questions share."""
    largest = max(parts, key=lambda part: len(part.members))
    shared = [part.undocumented for part in parts if len(part.members) > 1 or len(parts) == 1]
    return replace(
        largest,
        members=tuple(sorted(member for part in parts for member in part.members)),
        undocumented=tuple(dict.fromkeys(word for words in shared for word in words)),
        name=name,
    )


def _is_refused(found: TextGroup, questions: Sequence[GapQuestion]) -> bool:
    return all(questions[member].type == "unknown" for member in found.members)


def _wordings(found: TextGroup, questions: Sequence[GapQuestion]) -> list[str]:
    """Its questions, each wording once, the typical one first."""
    members = [found.typical, *found.members]
    return list(dict.fromkeys(questions[member].text for member in members))
