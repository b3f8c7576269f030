"""Questions with the documents that answer them: one JSON object a line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from schemas.errors import ConfigurationError, QuestionError
from schemas.question import QuestionType

MadeBy = Literal["title", "link", "error_code", "sentence"]
"""What of a document a question was made of."""

QuestionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _list(value: object) -> object:
    """One name stands for a list of one, and nothing for none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


class EvaluationQuestion(BaseModel):
    """A question and what answers it; other keys, which public sets have, are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    question: QuestionText = Field(validation_alias=AliasChoices("question", "query"))
    gold: Annotated[tuple[QuestionText, ...], BeforeValidator(_list)] = ()
    """Each names a document: by its id, page url, api url or api name. None: it is off-topic."""
    type: QuestionType | None = None
    made: MadeBy | None = None
    """What apidesk made it of; None where a person wrote it."""

    @property
    def label(self) -> QuestionType | None:
        """The type that a classifier should give; what no document answers is `unknown`."""
        return self.type or (None if self.gold else "unknown")


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """The questions in the file at `path`; empty lines are passed over.

    Raises QuestionError for a file that cannot be read or holds none, and for the first bad line,
    which it names.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise _bad(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _bad(f"{path}: is not UTF-8") from None
    found = [_question(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise _bad(f"{path}: holds no question")
    return found


def write_questions(path: Path, questions: Iterable[EvaluationQuestion]) -> None:
    """Write `questions` that apidesk made to `path`.

    Raises ConfigurationError where that cannot be written, or holds questions of somebody's own.
    """
    if path.exists() and not all(question.made for question in read_questions(path)):
        raise ConfigurationError(
            f"{path}: holds questions of your own: pass it as QUESTIONS, or name another --save"
        )
    lines = [q.model_dump_json(exclude_none=True) + "\n" for q in questions]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None


def _question(path: Path, number: int, line: str) -> EvaluationQuestion:
    try:
        return EvaluationQuestion.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"][:1])
        raise _bad(f"{path}, line {number}: {where}{first['msg']}") from None


def _bad(message: str) -> QuestionError:
    return QuestionError(message, field="questions")
