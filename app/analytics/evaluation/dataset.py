"""Reads the questions of an evaluation, and finds their gold documents by name.

The gold documents of a question are those that answer it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ingestion.sources.folder import read_text
from ingestion.store.client import batches
from ingestion.store.collection import Collection
from schemas.base import NonEmptyStr
from schemas.document import Chunk
from schemas.errors import ConfigurationError, QuestionError, SourceError
from schemas.question import QuestionType

GeneratedFrom = Literal["title", "link", "error_code", "sentence"]
"""The part of a document that a question was generated from."""

GoldDocuments = Sequence[frozenset[str]]
"""For each name in a question's `gold`, the keys (`source/document_id`) of the documents with this name."""

UNANSWERABLE = "unanswerable"
"""The `kind` of a question that is about the platform, but that the documents do not answer."""

OFF_TOPIC = "off-topic"
"""The `kind` of a question that is not about the platform."""

MIN_KEY_SIMILARITY = 0.85
"""Minimum similarity at which an unknown key or `kind` of a question counts as a misspelling.

For example, a question with the key `fact` is refused, because `fact` resembles `facts`. The similarity is
difflib's ratio, from 0 to 1.
"""

SAMPLE_DOCUMENTS = 2_000
"""Maximum number of documents that questions are generated from."""

READ_BATCH = 200
"""Number of documents that are read at once."""

MAX_NAMES_IN_ERROR = 3
"""Maximum number of unknown names in an error message."""

_METHOD = re.compile(r"`(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE|QUERY)`")
"""The HTTP method in the `request_url` section of an API page."""

_PLACE_IN_JSON = re.compile(r" at line 1 column (\d+)$")
"""The position in an error message of the JSON parser.

The message always says line 1, because the parser gets one line of the file at a time.
"""

_OPERATION = re.compile(r"([A-Z]+) +(/\S*)")
"""A gold name that is an operation: a method and a path."""


def _as_list(value: object) -> object:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def _as_text(value: object) -> str:
    return "" if value is None else str(value)


Fact = Annotated[tuple[NonEmptyStr, ...], BeforeValidator(_as_list), Field(min_length=1)]
"""A fact as alternative strings. A text that contains one of the strings states the fact."""


class EvaluationQuestion(BaseModel):
    """A question and its gold documents.

    Unknown keys are ignored, because public datasets contain additional keys. However, an unknown key is
    refused if it looks like a misspelling of a known key that the question lacks: `fact` for `facts`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    question: NonEmptyStr = Field(validation_alias=AliasChoices("question", "query"))
    gold: Annotated[tuple[NonEmptyStr, ...], BeforeValidator(_as_list)] = ()
    """The gold names: names of documents that answer the question. A name may refer to several documents.

    A name is an id, page url, api url, api name, file path or operation such as `POST /orders`.
    """
    facts: Annotated[tuple[Fact, ...], BeforeValidator(_as_list)] = ()
    """The facts that a right answer states."""
    kind: str = ""
    """The kind of information that the question asks for, such as `limit`.

    Without gold documents and facts, the kind must be `unanswerable`, `off-topic` or empty. Empty means
    off-topic.
    """
    id: Annotated[str, BeforeValidator(_as_text)] = ""
    type: QuestionType | None = None
    generated_from: GeneratedFrom | None = Field(default=None, alias="made")
    """The part of a document from which the question was generated; None if a person wrote it."""
    _path: str = PrivateAttr("")
    """The file, for error messages; empty if the question was not read from a file."""
    _line: int = PrivateAttr(0)
    """The number of the line in the file, from 1."""

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: object) -> object:
        return _refuse_misspelt_keys(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        no_answer = (UNANSWERABLE, OFF_TOPIC)
        if self.has_no_answer:
            if self.kind and self.kind not in no_answer:
                raise _line_error(
                    f"kind: {self.kind!r} requires gold or facts; without them, kind is "
                    f"{UNANSWERABLE!r} or {OFF_TOPIC!r}{_did_you_mean(self.kind, no_answer)}"
                )
        elif self.kind in no_answer:
            raise _line_error(f"kind: {self.kind!r} is for questions without gold and facts")
        elif meant := _did_you_mean(self.kind, no_answer):
            raise _line_error(f"kind: unknown value {self.kind!r}{meant}")
        return self

    @property
    def has_no_answer(self) -> bool:
        """Whether the question has neither gold documents nor facts.

        Such a question is off-topic, or the documents do not cover it.
        """
        return not (self.gold or self.facts)

    @property
    def expected_type(self) -> QuestionType | None:
        """The type that the classifier should predict; None if it is not known."""
        is_off_topic = self.has_no_answer and self.kind != UNANSWERABLE
        return self.type or ("unknown" if is_off_topic else None)


_TEXT_KEYS = frozenset({"question", "query"})

_SPELLCHECKED_KEYS = ("question", "query", "gold", "facts", "kind", "type")
"""The keys whose misspellings are recognised.

`id` is left out because it is too short, and `made` because only `write_questions` writes it.
"""


def _refuse_misspelt_keys(line: dict[str, Any]) -> dict[str, Any]:
    known = {*EvaluationQuestion.model_fields, "query", "made"}
    lacking = set(_SPELLCHECKED_KEYS) - line.keys()
    if _TEXT_KEYS & line.keys():
        lacking -= _TEXT_KEYS
    for key in (key for key in line if key not in known):
        if meant := _did_you_mean(key, lacking):
            raise _line_error(f"unknown key {key!r}{meant}")
    return line


def _did_you_mean(text: str, known: Iterable[str]) -> str:
    """Return a hint such as "; did you mean 'facts'?", or "" if `text` resembles no entry of `known`.

    The text and the entry must start with the same letter. Otherwise, `qtype` would be taken for `type`,
    and `answerable` for its opposite, `unanswerable`.
    """
    text = text.casefold()
    candidates = sorted(name for name in known if name[:1] == text[:1])
    similar = get_close_matches(text, candidates, 1, MIN_KEY_SIMILARITY)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def _line_error(message: str) -> PydanticCustomError:
    return PydanticCustomError("question", "{message}", {"message": message})


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Read the questions from the JSON Lines file at `path`, skipping blank lines.

    Raises QuestionError if the file cannot be read, if it contains no question, or if a line is invalid.
    """
    try:
        lines = read_text(path).split("\n")
    except SourceError as error:
        raise _question_error(f"{path}: {error}") from None
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise _question_error(f"{path}: contains no questions")
    if not first.lstrip().startswith("{"):
        raise _question_error(
            f'{path}: not JSON Lines: each line must be an object such as {{"question": "..."}}'
        )
    return [_parse_line(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def distinct_questions(questions: Iterable[EvaluationQuestion]) -> list[EvaluationQuestion]:
    """Return `questions` without repetitions. A question repeats an earlier one if only the id differs."""
    first: dict[str, EvaluationQuestion] = {}
    for question in questions:
        first.setdefault(question.model_dump_json(exclude={"id"}), question)
    return list(first.values())


def write_questions(path: Path, questions: Iterable[EvaluationQuestion]) -> None:
    """Write generated questions to the JSON Lines file at `path`.

    Raises ConfigurationError if the file cannot be written or contains handwritten questions, and
    QuestionError if an existing file cannot be read as questions.
    """
    if path.exists() and not all(question.generated_from for question in read_questions(path)):
        raise ConfigurationError(
            f"{path}: not overwritten, because it contains handwritten questions. To evaluate with them, "
            "pass the file as QUESTIONS; to save generated questions, choose another file with --save"
        )
    lines = [
        question.model_dump_json(by_alias=True, exclude_defaults=True) + "\n"
        for question in questions
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


def _parse_line(path: Path, number: int, line: str) -> EvaluationQuestion:
    try:
        question = EvaluationQuestion.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"][:1])
        message = _PLACE_IN_JSON.sub(r" at column \1", first["msg"])
        raise _question_error(f"{path}, line {number}: {where}{message}") from None
    question._path, question._line = str(path), number
    return question


def _question_error(message: str) -> QuestionError:
    return QuestionError(message, field="questions")


def qualified_id(chunk: Chunk) -> str:
    """Return `source/document_id`, which identifies the document of `chunk` among all sources."""
    return f"{chunk.source}/{chunk.document_id}"


def shuffle_key(text: str) -> str:
    """Return a sort key that puts texts in a random-looking order, which is the same on every run."""
    return sha256(text.encode()).hexdigest()


class DocumentIndex:
    """Finds the documents of a collection by name, and keeps the chunks of a sample of documents.

    The key of a document is its `qualified_id`.
    """

    def __init__(self) -> None:
        self.sample: list[list[Chunk]] = []
        """The chunks of each document in the sample."""
        self.count = 0
        """Number of documents."""
        self._by_name: dict[str, set[str]] = defaultdict(set)
        self._by_page: dict[str, set[str]] = defaultdict(set)
        """Keys of documents by the part of the id before `#`. All operations of a page share this part."""
        self._by_operation: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        """Keys of documents by method and API url."""

    @classmethod
    def read(cls, collection: Collection, sample: int = SAMPLE_DOCUMENTS) -> "DocumentIndex":
        """Index `collection`, and keep the chunks of at most `sample` documents. Raises ApideskError."""
        index = cls()
        ids = {(stored.source, stored.document_id) for stored in collection.stored_chunks()}
        shuffled_ids = sorted(ids, key=lambda each: shuffle_key("/".join(each)))
        for batch in batches(shuffled_ids, READ_BATCH):
            by_document: dict[str, list[Chunk]] = defaultdict(list)
            for chunk in collection.chunks_of_documents(batch):
                by_document[qualified_id(chunk)].append(chunk)
            for chunks in by_document.values():
                index.add(chunks, keep=len(index.sample) < sample)
        index.sample.sort(key=lambda chunks: qualified_id(chunks[0]))
        return index

    def add(self, chunks: list[Chunk], keep: bool = True) -> None:
        """Add the document that consists of `chunks`. If `keep` is true, also add it to the sample."""
        if not chunks:
            return
        self.count += 1
        for chunk in chunks:
            key = qualified_id(chunk)
            for name in (chunk.document_id, chunk.page_url, chunk.api_url, chunk.api_name):
                self._by_name[name].add(key)
            self._by_page[chunk.document_id.partition("#")[0]].add(key)
            if chunk.api_url and chunk.kind == "request_url":
                for method in _METHOD.findall(chunk.body):
                    self._by_operation[method][chunk.api_url].add(key)
        if keep:
            self.sample.append(chunks)

    def documents_named(self, name: str) -> frozenset[str]:
        """Return the keys of the documents that `name` refers to.

        A name is looked up as an id, page url, api url or api name. If there is no match, it is looked up
        in one of these ways:

        - as an operation, if it has the form `POST /orders`; the path may omit the server's base path
        - otherwise as a file path; leading folders that are not part of the id are ignored
        """
        if not name:
            return frozenset()
        if name in self._by_name:
            return frozenset(self._by_name[name])
        if operation := _OPERATION.fullmatch(name):
            return frozenset(self._documents_of_operation(operation[1], operation[2]))
        return frozenset(self._documents_of_file(name))

    def _documents_of_operation(self, method: str, path: str) -> set[str]:
        """Return the documents of the operation with the shortest API url that ends with `path`."""
        by_url = self._by_operation.get(method, {})
        urls = [url for url in by_url if url.endswith(path)]
        return by_url[min(urls, key=len)] if urls else set()

    def _documents_of_file(self, name: str) -> set[str]:
        """Return the documents of the page at the path `name`, ignoring leading folders if necessary."""
        path = PurePosixPath(name)
        parts = path.with_suffix("").parts if path.name else ()
        pages = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((self._by_page[page] for page in pages if page in self._by_page), set())

    def name_of(self, chunks: list[Chunk]) -> str | None:
        """Return a name that refers only to the document of `chunks`, or None if there is no such name.

        The name is the page url or, if that is missing or ambiguous, the id.
        """
        names = (chunks[0].page_url, chunks[0].document_id)
        return next((name for name in names if len(self.documents_named(name)) == 1), None)

    def deduplicate_gold(self, question: EvaluationQuestion) -> EvaluationQuestion:
        """Return `question` without gold names that refer to the same documents as an earlier gold name."""
        first: dict[frozenset[str], str] = {}
        for name in question.gold:
            first.setdefault(self.documents_named(name), name)
        return question.model_copy(update={"gold": tuple(first.values())})

    def gold_documents(self, question: EvaluationQuestion) -> GoldDocuments:
        """Return the set of matching document keys for each gold name of `question`."""
        return [self.documents_named(name) for name in question.gold]

    def check_gold(self, questions: Iterable[EvaluationQuestion]) -> None:
        """Check that every gold name refers to a document. Raises QuestionError with the names that do not.

        The message begins with the file and the numbers of the lines that contain these names.
        """
        names: dict[str, None] = {}
        faulty: list[EvaluationQuestion] = []
        for question in questions:
            missing = [name for name in question.gold if not self.documents_named(name)]
            names.update(dict.fromkeys(missing))
            if missing:
                faulty.append(question)
        if not faulty:
            return
        listed = ", ".join(map(repr, islice(names, MAX_NAMES_IN_ERROR)))
        unlisted = len(names) - MAX_NAMES_IN_ERROR
        more = f" and {unlisted} more" if unlisted > 0 else ""
        generated = all(question.generated_from for question in faulty)
        advice = (
            "; `apidesk evaluate` without QUESTIONS generates new questions" if generated else ""
        )
        raise QuestionError(
            f"{_locations(faulty)}gold: no document has the id, page url, api url, api name, file path "
            f"or operation {listed}{more}{advice}",
            field="questions",
        )


def _locations(questions: Sequence[EvaluationQuestion]) -> str:
    """Return the file and the line numbers of questions; empty if they were not read from a file."""
    lines = [str(question._line) for question in questions if question._line]
    noun = "line" if len(lines) == 1 else "lines"
    return f"{questions[0]._path}, {noun} {', '.join(lines)}: " if lines else ""
