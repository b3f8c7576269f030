"""Indexes the documents of a collection by name, and keeps a sample to generate questions from."""

import re
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
from pathlib import PurePosixPath

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.measures import GoldDocuments
from ingestion.store.collection import Collection
from schemas.document import Chunk
from schemas.errors import QuestionError

SAMPLE_DOCUMENTS = 2_000
"""Maximum number of documents that questions are generated from."""

READ_BATCH = 200
"""Number of documents that are read at once."""

MAX_NAMES_IN_ERROR = 3
"""Maximum number of unknown names in an error message."""

_METHOD = re.compile(r"`(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE|QUERY)`")
"""The HTTP method in the `request_url` section of an API page."""

_OPERATION = re.compile(r"([A-Z]+) +(/\S*)")
"""An operation, written as method and path."""


def document_key(chunk: Chunk) -> str:
    """Return the key of the document that `chunk` belongs to, `source/document_id`."""
    return f"{chunk.source}/{chunk.document_id}"


def shuffle_key(text: str) -> str:
    """Return a sort key that puts texts in a random-looking order, which is the same on every run."""
    return sha256(text.encode()).hexdigest()


class DocumentIndex:
    """Finds the documents of a collection by name, and keeps the chunks of a sample of documents."""

    def __init__(self) -> None:
        self.sample: list[list[Chunk]] = []
        self.count = 0
        self._by_name: dict[str, set[str]] = defaultdict(set)
        self._by_operation: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        """Keys of documents by method and API url."""

    @classmethod
    def read(cls, collection: Collection, sample: int = SAMPLE_DOCUMENTS) -> "DocumentIndex":
        """Index `collection`, and keep the chunks of at most `sample` documents. Raises StoreError."""
        index = cls()
        ids = {(stored.source, stored.document_id) for stored in collection.stored_chunks()}
        keys = iter(sorted(ids, key=lambda key: shuffle_key("/".join(key))))
        while batch := list(islice(keys, READ_BATCH)):
            by_document: dict[str, list[Chunk]] = defaultdict(list)
            for chunk in collection.chunks_of_documents(batch):
                by_document[document_key(chunk)].append(chunk)
            for chunks in by_document.values():
                index.add(chunks, keep=len(index.sample) < sample)
        index.sample.sort(key=lambda chunks: document_key(chunks[0]))
        return index

    def add(self, chunks: list[Chunk], keep: bool = True) -> None:
        """Add the document that consists of `chunks`; `keep` also adds it to the sample."""
        if not chunks:
            return
        self.count += 1
        for chunk in chunks:
            key = document_key(chunk)
            for name in (chunk.document_id, chunk.page_url, chunk.api_url, chunk.api_name):
                self._by_name[name].add(key)
            if chunk.api_url and chunk.kind == "request_url":
                for method in _METHOD.findall(chunk.body):
                    self._by_operation[method][chunk.api_url].add(key)
        if keep:
            self.sample.append(chunks)

    def documents_named(self, name: str) -> frozenset[str]:
        """Return the keys of the documents that `name` refers to.

        A name is looked up in this order, and the first match counts:

        1. as an id, page url, api url or api name,
        2. as an operation such as `POST /orders`; its path may omit the server's base path,
        3. as a file path; leading folders that are not part of the id are ignored.
        """
        if not name:
            return frozenset()
        if name in self._by_name:
            return frozenset(self._by_name[name])
        if operation := _OPERATION.fullmatch(name):
            return frozenset(self._documents_of_operation(operation[1], operation[2]))
        return frozenset(self._documents_of_file(name))

    def _documents_of_operation(self, method: str, path: str) -> set[str]:
        """Return the documents of an operation, with the shortest base path that matches."""
        by_url = self._by_operation.get(method, {})
        urls = [url for url in by_url if url.endswith(path)]
        return by_url[min(urls, key=len)] if urls else set()

    def _documents_of_file(self, name: str) -> set[str]:
        """Return the documents with the path `name`. Drop leading folders until an id matches."""
        parts = PurePosixPath(name).with_suffix("").parts
        ids = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((self._by_name[id] for id in ids if id in self._by_name), set())

    def name_of(self, chunks: list[Chunk]) -> str | None:
        """Return a name that refers only to the document of `chunks`: its page url, its id, or None."""
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
            f"gold: no document has the id, page url, api url, api name or path {listed}{more}",
            field="questions",
        )
