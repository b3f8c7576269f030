"""Indexes the documents of a collection by name, and keeps a sample to generate questions from."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.measures import GoldDocuments
from ingestion.store.collection import Collection
from schemas.document import Chunk
from schemas.errors import QuestionError

SAMPLE_DOCUMENTS = 2_000
"""Maximum number of documents that questions are generated from."""

MAX_NAMES_IN_ERROR = 3
"""Maximum number of unknown names in an error message."""


def document_key(chunk: Chunk) -> str:
    """Return the key of the document that `chunk` belongs to, `source/document_id`."""
    return f"{chunk.source}/{chunk.document_id}"


def shuffle_key(text: str) -> str:
    """Return a sort key that orders texts pseudo-randomly, but in the same way on every run."""
    return sha256(text.encode()).hexdigest()


class DocumentIndex:
    """Finds the documents of a collection by name, and keeps the chunks of a sample of documents."""

    def __init__(self) -> None:
        self.sample: list[list[Chunk]] = []
        self.count = 0
        self._by_name: dict[str, set[str]] = defaultdict(set)

    @classmethod
    def read(cls, collection: Collection, sample: int = SAMPLE_DOCUMENTS) -> "DocumentIndex":
        """Index `collection`, and keep the chunks of at most `sample` documents. Raises StoreError."""
        index = cls()
        ids = {(stored.source, stored.document_id) for stored in collection.stored_chunks()}
        for position, (source, document_id) in enumerate(
            sorted(ids, key=lambda key: shuffle_key("/".join(key)))
        ):
            index.add(collection.chunks_of_document(document_id, source), keep=position < sample)
        index.sample.sort(key=lambda chunks: document_key(chunks[0]))
        return index

    def add(self, chunks: list[Chunk], keep: bool = True) -> None:
        """Add the document that consists of `chunks`; `keep` also adds it to the sample."""
        if not chunks:
            return
        self.count += 1
        for chunk in chunks:
            for name in (chunk.document_id, chunk.page_url, chunk.api_url, chunk.api_name):
                self._by_name[name].add(document_key(chunk))
        if keep:
            self.sample.append(chunks)

    def documents_named(self, name: str) -> frozenset[str]:
        """Return the keys of the documents whose id, page url, api url or api name is `name`."""
        return frozenset(self._by_name.get(name, ())) if name else frozenset()

    def name_of(self, chunks: list[Chunk]) -> str | None:
        """Return the page url or id of the document of `chunks` if it is unique, or None."""
        names = (chunks[0].page_url, chunks[0].document_id)
        return next((name for name in names if len(self.documents_named(name)) == 1), None)

    def deduplicate_gold(self, question: EvaluationQuestion) -> EvaluationQuestion:
        """Return `question` without gold names that refer to the same documents as an earlier name."""
        first: dict[frozenset[str], str] = {}
        for name in question.gold:
            first.setdefault(self.documents_named(name), name)
        return question.model_copy(update={"gold": tuple(first.values())})

    def gold_documents(self, question: EvaluationQuestion) -> GoldDocuments:
        """Return the set of matching document keys for each gold name of `question`."""
        return [self.documents_named(name) for name in question.gold]

    def check_gold(self, questions: Iterable[EvaluationQuestion]) -> None:
        """Check that every gold name exists. Raises QuestionError with the names that do not exist."""
        names = dict.fromkeys(name for question in questions for name in question.gold)
        missing = [name for name in names if not self.documents_named(name)]
        if not missing:
            return
        listed = ", ".join(map(repr, missing[:MAX_NAMES_IN_ERROR]))
        unlisted = len(missing) - MAX_NAMES_IN_ERROR
        more = f" and {unlisted} more" if unlisted > 0 else ""
        raise QuestionError(
            f"gold: no document has the id, page url, api url or api name {listed}{more}",
            field="questions",
        )
