"""What the documents of a collection are called, and those of them that questions are made from."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.measures import GoldDocuments
from ingestion.store.collection import Collection
from schemas.document import Chunk
from schemas.errors import QuestionError

SAMPLE = 2_000
"""Documents, at most, that are kept to make questions from."""

FEW = 3
"""Names that a message tells."""


def document_key(chunk: Chunk) -> str:
    """The document of a chunk: its source and its id there."""
    return f"{chunk.source}/{chunk.document_id}"


def order(text: str) -> str:
    """A key that sorts texts as if shuffled, the same at every run."""
    return sha256(text.encode()).hexdigest()


class DocumentIndex:
    """The documents of a collection by their names, and the chunks of a sample of them."""

    def __init__(self) -> None:
        self.sample: list[list[Chunk]] = []
        self.count = 0
        self._by_name: dict[str, set[str]] = defaultdict(set)

    @classmethod
    def read(cls, collection: Collection, sample: int = SAMPLE) -> "DocumentIndex":
        """The documents of `collection`, and the chunks of at most `sample` of them. Raises StoreError."""
        found = cls()
        ids = {(stored.source, stored.document_id) for stored in collection.stored()}
        for place, (source, document_id) in enumerate(
            sorted(ids, key=lambda i: order("/".join(i)))
        ):
            found.add(collection.chunks_of(document_id, source), keep=place < sample)
        found.sample.sort(key=lambda chunks: document_key(chunks[0]))
        return found

    def add(self, chunks: list[Chunk], keep: bool = True) -> None:
        """Take note of a document, and with `keep` of its chunks."""
        if not chunks:
            return
        self.count += 1
        for chunk in chunks:
            for name in (chunk.document_id, chunk.page_url, chunk.api_url, chunk.api_name):
                self._by_name[name].add(document_key(chunk))
        if keep:
            self.sample.append(chunks)

    def called(self, name: str) -> frozenset[str]:
        """The documents that a document id, page url, api url or api name stands for."""
        return frozenset(self._by_name.get(name, ())) if name else frozenset()

    def name_of(self, chunks: list[Chunk]) -> str | None:
        """A name that stands for the document of `chunks` alone, if it has one; a url says most."""
        names = (chunks[0].page_url, chunks[0].document_id)
        return next((name for name in names if len(self.called(name)) == 1), None)

    def without_doubles(self, question: EvaluationQuestion) -> EvaluationQuestion:
        """`question` with one gold for each thing to be found: several names may mean one document."""
        first: dict[frozenset[str], str] = {}
        for name in question.gold:
            first.setdefault(self.called(name), name)
        return question.model_copy(update={"gold": tuple(first.values())})

    def gold(self, question: EvaluationQuestion) -> GoldDocuments:
        """What each gold of `question` stands for."""
        return [self.called(name) for name in question.gold]

    def check(self, questions: Iterable[EvaluationQuestion]) -> None:
        """Raises QuestionError when no document has a name that is somebody's gold."""
        names = dict.fromkeys(name for question in questions for name in question.gold)
        if missing := [name for name in names if not self.called(name)]:
            more = f" and {len(missing) - FEW} more" if len(missing) > FEW else ""
            raise QuestionError(
                f"gold: no document has the id, page url, api url or api name "
                f"{', '.join(map(repr, missing[:FEW]))}{more}",
                field="questions",
            )
