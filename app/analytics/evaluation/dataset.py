"""Reads and writes evaluation datasets: questions with their gold documents, as JSON Lines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from schemas.base import NonEmptyStr
from schemas.errors import ConfigurationError, QuestionError
from schemas.question import QuestionType

GeneratedFrom = Literal["title", "link", "error_code", "sentence"]
"""The part of a document that a question was generated from."""


UNANSWERABLE = "unanswerable"
"""The kind of a question about the platform that the documents do not answer."""


def _list(value: object) -> object:
    """Wrap a single name in a list; turn None into an empty list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


Fact = Annotated[tuple[NonEmptyStr, ...], BeforeValidator(_list), Field(min_length=1)]
"""Alternative strings for a fact; one of them suffices."""


class EvaluationQuestion(BaseModel):
    """A question and its gold documents. Other keys, as in public datasets, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    question: NonEmptyStr = Field(validation_alias=AliasChoices("question", "query"))
    gold: Annotated[tuple[NonEmptyStr, ...], BeforeValidator(_list)] = ()
    """The name of each document that answers the question.

    A name is an id, page url, api url, api name, file path or operation such as `POST /orders`. It is
    empty for an off-topic or unanswerable question.
    """
    facts: Annotated[tuple[Fact, ...], BeforeValidator(_list)] = ()
    """The facts that a right answer states."""
    kind: str = ""
    """What the question asks for, such as `limit`, or `unanswerable`."""
    id: Annotated[str, BeforeValidator(str)] = ""
    type: QuestionType | None = None
    generated_from: GeneratedFrom | None = Field(default=None, alias="made")
    """The part of a document from which the question was generated; None if a person wrote it."""

    @property
    def is_unanswerable(self) -> bool:
        """Whether the documents do not answer the question: it names neither documents nor facts."""
        return not (self.gold or self.facts)

    @property
    def label(self) -> QuestionType | None:
        """The expected type; None if it is open. A question of kind `unanswerable` is not off-topic."""
        is_off_topic = self.is_unanswerable and self.kind != UNANSWERABLE
        return self.type or ("unknown" if is_off_topic else None)


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Read the questions from the file at `path`, skipping empty lines.

    Raises QuestionError if the file cannot be read, if it contains no question, or if a line is invalid.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise _question_error(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _question_error(f"{path}: is not UTF-8") from None
    questions = [
        _parse_line(path, number, line) for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not questions:
        raise _question_error(f"{path}: contains no questions")
    return questions


def write_questions(path: Path, questions: Iterable[EvaluationQuestion]) -> None:
    """Write generated questions to `path`.

    Raises ConfigurationError if the file cannot be written or contains handwritten questions.
    """
    if path.exists() and not all(question.generated_from for question in read_questions(path)):
        raise ConfigurationError(
            f"{path}: contains handwritten questions: pass it as QUESTIONS, or set another --save"
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
        return EvaluationQuestion.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"][:1])
        raise _question_error(f"{path}, line {number}: {where}{first['msg']}") from None


def _question_error(message: str) -> QuestionError:
    return QuestionError(message, field="questions")
