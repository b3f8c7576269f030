"""Checks the steps of an answer against the chunks that the model was shown.

A step is a text in the list `answer`. A fact is a name that the platform defines, such as a path, a field
or an error code (see `facts.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingestion.text.markdown_blocks import strip_anchor
from prompts.chat_prompts import unescape_data
from runnables.grounding.facts import FactIndex, find_unverified_facts
from runnables.grounding.markdown_text import (
    CitedText,
    LinkPolicy,
    last_citation,
    remove_sentences_with,
    resolve_citations,
    strip_citations,
)
from runnables.grounding.support import contains_numbers, inferred_support, shares_words
from schemas.answer import Refused
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Question

_PROMPT_TAG = re.compile(r"</(?:documents?|question|platform|json_schema)>")
"""A closing tag of the prompts. Small models repeat it, and then continue with invented text."""

MAX_STEP_CHARS = 4_000
"""Maximum length of a step, in characters; the rest is dropped."""


@dataclass(frozen=True)
class GroundingRules:
    """Settings of the checks that `Grounder` makes."""

    hosts: tuple[str, ...] = ()
    """The platform's own hosts; their subdomains count as well."""
    remove_unverified: bool = False
    """Whether sentences with unverified facts are removed; otherwise the facts are listed."""


@dataclass(frozen=True)
class GroundedStep:
    """A step of an answer after all checks."""

    text: str
    """Empty if the step was removed, or contains nothing but punctuation and citations."""
    numbers: tuple[int, ...]
    """Numbers of the chunks that the step cites."""
    unverified: tuple[str, ...]
    """Facts that neither the question nor the chunks cited so far contain."""
    supported: bool
    """Whether the cited chunks support the step; false without citations."""
    refused: Refused
    """Counts of the citations and links that were removed from the step."""
    is_inferred: bool = False
    """Whether the model cited nothing, and the citation was added."""
    has_supported_quantities: bool = True
    """Whether the cited chunks or the question contain each quantity in the text, such as "20 tokens".

    It is false if the step has no citations. For a quote, which is not checked, it is always true.
    """
    names_gap: bool = False
    """Whether the step only names what the documents do not answer. It then needs no citation."""


class Grounder:
    """Checks the steps of one answer, in order."""

    def __init__(
        self, question: Question, chunks: Sequence[RetrievedChunk], rules: GroundingRules
    ) -> None:
        """Store the question, and collect the links that the answer may contain.

        `chunks` are the chunks that the model was shown; the first one is number 1.
        """
        self._question = f"{question.text}\n{question.original_text}".strip()
        self._chunks = [retrieved.chunk for retrieved in chunks]
        self._rules = rules
        self._cited = set[int]()
        """Numbers of the chunks that the checked steps cite."""
        self._facts = FactIndex([self._question])
        self._indexed = set[int]()
        """Numbers of the chunks in `_facts`, which also contains the question."""
        self._links = LinkPolicy(
            pages=(url for c in self._chunks for url in (c.page_url, strip_anchor(c.page_url))),
            question=self._question,
            hosts=rules.hosts,
            texts=(chunk.text for chunk in self._chunks),
        )

    def check_step(self, text: str) -> GroundedStep:
        """Return the step after a check of its citations, links, facts and support.

        The step is cut at `MAX_STEP_CHARS`, or where the model repeats a closing tag of the prompt. A fact
        is verified if it occurs in the question or in a chunk that this or an earlier step cites.
        """
        text = unescape_data(self._before_prompt_tag(text[:MAX_STEP_CHARS]))
        without_links, removed_links = self._links.remove_disallowed(text)
        cited = resolve_citations(without_links, len(self._chunks))
        refused = Refused(citations=cited.unknown_count, links=removed_links)
        facts = self._unverified_facts(cited)
        if facts and self._rules.remove_unverified:
            remaining = remove_sentences_with(cited.text, facts)
            cited, facts = resolve_citations(remaining, len(self._chunks)), []
        self._cited.update(cited.numbers)
        statement = strip_citations(cited.text)
        has_words = any(map(str.isalnum, statement))
        evidence = self.chunks_numbered(cited.numbers)
        has_numbers = contains_numbers(statement, evidence, self._question)
        return GroundedStep(
            text=cited.text if has_words else "",
            numbers=cited.numbers,
            unverified=tuple(facts),
            supported=has_words
            and has_numbers
            and shares_words(statement, evidence, self._question),
            refused=refused,
            has_supported_quantities=has_numbers,
        )

    def mark_gap(self, step: GroundedStep, opening: str) -> GroundedStep:
        """Return `step` with `names_gap` set.

        It is true if the step starts with `opening`, cites nothing and claims nothing. Markup, punctuation
        and a step number before `opening` are ignored. The step claims nothing if each of its quantities is
        in the question or in any chunk, and none of its facts is unverified.
        """
        names_gap = (
            _letters(step.text).startswith(_letters(opening))
            and not (step.numbers or step.unverified)
            and contains_numbers(step.text, self._chunks, self._question)
        )
        return replace(step, names_gap=names_gap)

    def infer_citation(self, step: GroundedStep) -> GroundedStep:
        """Return `step`, which cites nothing, with a citation of the chunk that supports it best.

        `step` is returned unchanged if no single chunk contains enough of it. A step that would exceed
        `MAX_STEP_CHARS` is cut before the citation.
        """
        shares = [inferred_support(step.text, chunk, self._question) for chunk in self._chunks]
        if not any(shares):
            return step
        citation = f" [{shares.index(max(shares)) + 1}]"
        cited = self.check_step(step.text[: MAX_STEP_CHARS - len(citation)] + citation)
        return replace(cited, refused=step.refused, is_inferred=True)

    def check_quote(self, text: str) -> GroundedStep:
        """Return the step of a verbatim quote, whose links, facts and support need no check.

        The quote ends with its only citation; anything before it that looks like a citation, such as the
        interval `[0,1]`, is part of the quoted text. A text without a citation is unsupported.
        """
        number = last_citation(text)
        numbers = () if number is None else (number,)
        return GroundedStep(text, numbers, (), bool(numbers), Refused())

    def is_free_of_claims(self, text: str) -> bool:
        """Return whether `text` has no citations, disallowed links or unverified facts.

        The result is false if `text` is longer than a step may be.
        """
        if len(text) > MAX_STEP_CHARS:
            return False
        _, removed_links = self._links.remove_disallowed(text)
        cited = resolve_citations(text, 0)
        return not (removed_links or cited.unknown_count or self._unverified_facts(cited))

    def chunks_numbered(self, numbers: Sequence[int]) -> list[Chunk]:
        """Return the chunks with these numbers."""
        return [self._chunks[number - 1] for number in numbers]

    def _before_prompt_tag(self, text: str) -> str:
        """Return `text` up to the first closing tag of the prompts that no chunk contains."""
        for tag in _PROMPT_TAG.finditer(text):
            if not any(tag[0] in chunk.text for chunk in self._chunks):
                return text[: tag.start()].rstrip(' }"`\n')
        return text

    def _unverified_facts(self, cited: CitedText) -> list[str]:
        """Return the facts of `cited` that neither the question nor the chunks cited so far contain.

        The index of the last call is extended. If a sentence with an unverified fact was removed, a chunk
        that only this sentence cited is not cited any more. The index is then rebuilt without the chunk.
        """
        numbers = self._cited.union(cited.numbers)
        if not self._indexed <= numbers:
            self._facts, self._indexed = FactIndex([self._question]), set()
        for chunk in self.chunks_numbered(sorted(numbers - self._indexed)):
            self._facts.add(chunk.text)
        self._indexed = numbers
        return find_unverified_facts(strip_citations(cited.text), self._facts)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()


def apply_verdict(step: GroundedStep, supported: bool | None) -> GroundedStep:
    """Return `step` with the judge's verdict, or unchanged if there is no verdict or no citation.

    A step with a quantity that is neither in its chunks nor in the question stays unsupported.
    """
    if supported is None or not step.numbers:
        return step
    return replace(step, supported=supported and step.has_supported_quantities)
