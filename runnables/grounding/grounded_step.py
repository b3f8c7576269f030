"""One step of an answer, checked against the chunks that its writer was shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runnables.grounding.citations import AllowedLinks, CitedText, resolve_citations, without_marks
from runnables.grounding.facts import FactIndex, unverified
from runnables.grounding.markdown_text import remove_sentences_with
from runnables.grounding.support import is_supported
from schemas.answer import Refused
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Question

LONGEST = 4_000
"""Characters of a step that are kept: more is no step."""


@dataclass(frozen=True)
class GroundingRules:
    """What the checks depend on besides the answer itself."""

    hosts: tuple[str, ...] = ()
    """The platform's own hosts, subdomains included."""
    remove_unverified: bool = False
    """Whether a sentence goes that states what cannot be verified."""


@dataclass(frozen=True)
class GroundedStep:
    """A step that says nothing about where it came from that is not so."""

    text: str
    """Empty when nothing of it could stay."""
    numbers: tuple[int, ...]
    """The chunks that it cites."""
    unverified: tuple[str, ...]
    supported: bool
    """Whether what it cites bears it out; what cites nothing is not supported."""
    likely: bool
    """Whether it is supported or, where it cites nothing, borne out by what its writer was shown."""
    refused: Refused


class Grounder:
    """Checks the steps of one answer in their order."""

    def __init__(
        self, asked: Question, chunks: Sequence[RetrievedChunk], rules: GroundingRules
    ) -> None:
        """`chunks` are what the writer was shown; the first is number 1."""
        self._question = f"{asked.text}\n{asked.said}".strip()
        self._chunks = [retrieved.chunk for retrieved in chunks]
        self._rules = rules
        self._cited: dict[int, None] = {}
        self._known, self._read = FactIndex([self._question]), set[int]()
        self.links = AllowedLinks(
            (chunk.page_url for chunk in self._chunks),
            self._question,
            rules.hosts,
            (chunk.text for chunk in self._chunks),
        )

    def step(self, text: str) -> GroundedStep:
        """`text` with its marks resolved, its links closed and its facts looked up.

        A fact counts as verified where a chunk holds it that this step or one before it cites.
        """
        closed, links = self.links.close(text[:LONGEST])
        cited = resolve_citations(closed, len(self._chunks))
        refused = Refused(citations=cited.unknown, links=links)
        facts = self._unverified(cited)
        if facts and self._rules.remove_unverified:
            cited, facts = (
                resolve_citations(remove_sentences_with(cited.text, facts), len(self._chunks)),
                [],
            )
        self._cited.update(dict.fromkeys(cited.numbers))
        stated = without_marks(cited.text)
        rests_on = self._of(cited.numbers) or self._chunks
        likely = bool(stated) and is_supported(stated, rests_on, self._question)
        return GroundedStep(
            text=cited.text if stated else "",
            numbers=cited.numbers,
            unverified=tuple(facts),
            supported=likely and bool(cited.numbers),
            likely=likely,
            refused=refused,
        )

    def quoted_step(self, text: str) -> GroundedStep:
        """As `step`, for what was taken from the chunks word by word: it needs no support."""
        closed, links = self.links.close(text)
        cited = resolve_citations(closed, len(self._chunks))
        refused = Refused(citations=cited.unknown, links=links)
        quoted = bool(cited.numbers)
        return GroundedStep(cited.text, cited.numbers, (), quoted, quoted, refused)

    def holds(self, text: str) -> bool:
        """Whether a text that cites nothing, such as a greeting, claims nothing either."""
        if len(text) > LONGEST:
            return False
        _, links = self.links.close(text)
        cited = resolve_citations(text, 0)
        return not (links or cited.unknown or self._unverified(cited))

    def cited_by(self, step: GroundedStep) -> list[Chunk]:
        """The chunks that `step` cites."""
        return self._of(step.numbers)

    def _of(self, numbers: Sequence[int]) -> list[Chunk]:
        return [self._chunks[number - 1] for number in numbers]

    def _unverified(self, cited: CitedText) -> list[str]:
        known = self._known_of({*self._cited, *cited.numbers})
        return unverified(without_marks(cited.text), known)

    def _known_of(self, numbers: set[int]) -> FactIndex:
        """What these chunks and the question say; each chunk is read once, unless a step lost its mark."""
        if not self._read <= numbers:
            self._known, self._read = FactIndex([self._question]), set()
        for chunk in self._of(sorted(numbers - self._read)):
            self._known.read(chunk.text)
        self._read = numbers
        return self._known


def judged(step: GroundedStep, supported: bool | None) -> GroundedStep:
    """`step` with a judge's verdict, where there is one."""
    if supported is None or not step.numbers:
        return step
    return replace(step, supported=supported, likely=supported)
