"""What the routes under /v1 share: request models, functions that read the conversation, and errors.

The last user message of the conversation is the question. Errors have OpenAI's format.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, LiteralString

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.plugins.problem_details import ProblemDetailsException
from litestar.types import ExceptionHandlersMap
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.api.openai.answer_text import parse_answer_text
from app.api.problems import to_problem
from app.service.session_store import select_recent_turns
from runnables.conversation.follow_up import make_standalone
from schemas.errors import ApideskError, QuestionError
from schemas.question import Turn
from schemas.settings import Settings

TEXT_PARTS = ("text", "input_text", "output_text")
"""The types of the parts of a message that contain text.

Chat messages use `text`; messages of `/v1/responses` use `input_text` and `output_text`.
"""

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
"""The roles of messages in OpenAI's API."""


def accept_only(message: LiteralString, *accepted: object) -> BeforeValidator:
    """Return a validator that accepts null and `accepted`, and refuses other values with `message`."""

    def check(value: object) -> object:
        if value is not None and value not in accepted:
            raise PydanticCustomError("unsupported", message)
        return value

    return BeforeValidator(check)


def _check_role(role: str) -> str:
    if role not in ROLES:
        message = "{role} is not a role; use one of: {roles}"
        raise PydanticCustomError("role", message, {"role": role[:40], "roles": ", ".join(ROLES)})
    return role


def _to_parts(content: object) -> object:
    """Convert a text to a list with one text part, and null to an empty list."""
    if isinstance(content, str):
        return [{"type": TEXT_PARTS[0], "text": content}]
    return expect_list([] if content is None else content)


def expect_list(value: object) -> object:
    """Return `value` if it is a list; otherwise raise PydanticCustomError.

    The error message also mentions a string, because callers convert strings to lists first.
    """
    if not isinstance(value, list):
        raise PydanticCustomError("text_or_list", "Input should be a string or a list")
    return value


class RequestModel(BaseModel):
    """The base class of the request models. Unknown parameters in a request are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


MessageRole = Annotated[str, AfterValidator(_check_role)]


class ContentPart(RequestModel):
    """A part of a message's content."""

    type: str
    text: str = ""


class ChatMessage(RequestModel):
    """A message of the conversation."""

    role: MessageRole
    content: Annotated[list[ContentPart], BeforeValidator(_to_parts)] = []
    """A request may contain a string or null instead of a list."""

    @property
    def text(self) -> str:
        """The text parts of the content, joined by line breaks."""
        return "\n".join(part.text for part in self.content if part.type in TEXT_PARTS)

    @property
    def answer(self) -> str | None:
        """The answer itself, without the lists of links and notes that replies also contain.

        None if the message contains no answer or is not from the assistant.
        """
        return (parse_answer_text(self.text) or None) if self.role == "assistant" else None


class TextFormat(RequestModel):
    """The format of the reply. Only `text` is accepted, because the answer is Markdown."""

    type: Literal["text"] = "text"


class CommonParameters(RequestModel):
    """Parameters that `/v1/chat/completions` and `/v1/responses` have in common.

    `temperature`, `top_p` and `top_logprobs` are checked and then ignored.
    """

    model: str
    stream: bool | None = False
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    """Other values are refused, because the client's tools are never called."""


Penalty = Annotated[float, Field(ge=-2, le=2)] | None
"""A penalty for repeated tokens, which is checked and then ignored."""

TokenLimit = Annotated[int, Field(ge=1)] | None
"""A limit on the tokens of the reply, which is checked and then ignored."""


def read_conversation(
    messages: Sequence[ChatMessage], settings: Settings, field: str = "messages"
) -> tuple[str, tuple[Turn, ...]]:
    """Return the question and the earlier turns (questions with their answers), oldest first.

    The number and size of the turns are limited as in a session. System messages are ignored. This function
    blocks: call it in a worker thread.

    Raises QuestionError if there is no user message, or if the question has a part that is not text. The
    error names `field`, the request field that contains the messages.
    """
    questions = [index for index, message in enumerate(messages) if message.role == "user"]
    if not questions:
        raise QuestionError(f"{field}: no message has the role user", field=field)
    question = messages[questions[-1]]
    for part in question.content:
        if part.type not in TEXT_PARTS:
            raise QuestionError(f"{field}: only text is supported, not {part.type}", field=field)
    newest_first = reversed(list(_read_turns(messages[: questions[-1]])))
    recent = select_recent_turns(newest_first, settings.history_turns, settings.history_chars)
    return question.text, _make_standalone(reversed(recent))


def _read_turns(messages: Sequence[ChatMessage]) -> Iterator[Turn]:
    """Yield a turn for each question that has an answer."""
    question = ""
    for message in messages:
        if message.role == "user":
            question = message.text
        elif question and (answer := message.answer) is not None:
            yield Turn(question=question, answer=answer, asked_at=datetime.now(UTC))
            question = ""


def _make_standalone(turns: Iterator[Turn]) -> tuple[Turn, ...]:
    """Return the turns, with follow-up questions rewritten as standalone questions."""
    standalone: list[Turn] = []
    for turn in turns:
        question = make_standalone(turn.question, standalone)
        standalone.append(turn.model_copy(update={"question": question}))
    return tuple(standalone)


# --- errors ---------------------------------------------------------------------------------------

OPENAI_PREFIX = "/v1/"

RESPONSES_PATH = "/responses"

BODY = "data"
"""The body parameter of the route handlers. Litestar's error for a missing body names this parameter."""

ERROR_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def stream_error(error: Exception) -> dict[str, str | None]:
    """Return the fields of an error that occurs after a stream has started.

    `param` is None, because the parameters are checked before the stream starts.
    """
    return _error_fields(to_problem(error), param=None)


def _error_response(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    problem = to_problem(error)
    is_responses_request = request.scope["path"].endswith(RESPONSES_PATH)
    param = _error_param(error, "input" if is_responses_request else "messages")
    return Response(
        {"error": _error_fields(problem, param)},
        status_code=problem.status_code,
        headers=problem.headers,
        media_type="application/json",
    )


OPENAI_EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    ApideskError: _error_response,
    HTTPException: _error_response,
    ValidationException: _error_response,
    Exception: _error_response,
}
"""Exception handlers for the routes under /v1."""


def handle_unrouted(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Return the response to an unknown path or method, in OpenAI's format for paths under /v1."""
    if request.scope["path"].startswith(OPENAI_PREFIX):
        return _error_response(request, error)
    return to_problem(error).to_response(request)


def _error_fields(problem: ProblemDetailsException, param: str | None) -> dict[str, str | None]:
    return {
        "message": problem.detail,
        "type": _error_type(problem.status_code),
        "param": param,
        "code": dict(problem.extra or {})["code"],
    }


def _error_type(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return ERROR_TYPES.get(HTTPStatus(status), "invalid_request_error")


def _error_param(error: Exception, question_param: str) -> str | None:
    """Return OpenAI's name for the invalid parameter, or None.

    `question_param` is the parameter that contains the question.
    """
    if isinstance(error, QuestionError):
        return question_param if error.field == "question" else error.field
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        name = str(error.extra[0].get("key") or "").partition(".")[0]
        return None if name in ("", BODY) else name
    return None
