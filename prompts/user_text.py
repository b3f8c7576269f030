"""Text for users: around answers, in the terminal chat, in API documents, on the web pages and in setup.

`prompts/text` contains one TOML file per language.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ValidationError

from schemas.answer import Answer, Confidence, DegradedReason
from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import LANGUAGES, Language
from schemas.document import SectionKind
from schemas.errors import ConfigurationError

ChatCommandName = Literal["/new", "/sources", "/retrieved", "/copy", "/help", "/quit"]
SuggestionKind = Literal["call", "error", "question", "how", "works", "about", "section"]

_API_SECTIONS = [kind for kind in get_args(SectionKind) if kind != "prose"]


def _complete(*keys: str) -> AfterValidator:
    """Return a validator that rejects a mapping in which one of `keys` is missing."""

    def check(mapping: Mapping[Any, str]) -> Mapping[Any, str]:
        if missing := [key for key in keys if key not in mapping]:
            raise ValueError(f"missing: {', '.join(missing)}")
        return mapping

    return AfterValidator(check)


def _check_answer_fields(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return `labels`. Raises ValueError if a key is not the name of a field of `Answer`."""
    if unknown := [name for name in labels if name not in Answer.model_fields]:
        raise ValueError(f"no field of Answer: {', '.join(unknown)}")
    return labels


class AnswerText(ConfigModel):
    """Labels around an answer, on a terminal and in Markdown."""

    sources: NonEmptyStr
    related: NonEmptyStr
    nearest: NonEmptyStr
    """Heading of the list of pages that may help."""
    note: NonEmptyStr
    """Label of the doubts and warnings above an answer in Markdown."""
    doubt: dict[Confidence, NonEmptyStr]
    """A sentence for each confidence below `high`."""
    unverified: NonEmptyStr
    unsupported: NonEmptyStr
    degraded: NonEmptyStr
    correction_notice: NonEmptyStr
    """Follows streamed text that is not part of the final answer."""
    fields: Annotated[dict[str, NonEmptyStr], AfterValidator(_check_answer_fields)]
    """Labels of an answer's fields, without a colon. The keys are names of fields of `Answer`.

    If a field in `schemas.answer.FOOTER_FIELDS` has no label, only its value is printed.
    """


class ChatText(ConfigModel):
    """Messages of `apidesk chat`."""

    keys: NonEmptyStr
    new: NonEmptyStr
    none_yet: NonEmptyStr
    stopped: NonEmptyStr
    no_command: NonEmptyStr
    no_source: NonEmptyStr
    no_sources: NonEmptyStr
    copied: NonEmptyStr
    no_clipboard: NonEmptyStr
    commands: Annotated[dict[ChatCommandName, NonEmptyStr], _complete(*get_args(ChatCommandName))]
    """The help line of each command."""


class SectionLabels(ConfigModel):
    """Text in rendered API documents: section titles, table columns, connecting words."""

    sections: Annotated[dict[SectionKind, NonEmptyStr], _complete(*_API_SECTIONS)]
    """The title of each kind of section except `prose`."""
    parameter_columns: tuple[str, str, str, str, str]
    """Name, type, required, description, example."""
    location_column: str
    error_columns: tuple[str, str, str, str]
    """Code, message, cause, remedy."""
    permission_columns: tuple[str, str]
    """Package, description."""
    yes: str
    no: str
    method: str
    url: str
    version: str
    service: str
    deprecated: str
    values: str
    request_example: str
    response_example: str
    servers: str
    default: str
    range: str
    length: str
    count: str
    pattern: str
    nullable: str
    deprecated_parameter: str
    see_above: str
    fields_omitted: str
    see: str
    full_stop: str
    """The character that ends a sentence."""
    any_of: str
    without_credentials: str
    authentication: str
    alternative: str
    """Marks a row of a parameter table as one of several alternative schemas."""
    event: str
    """Says, in a webhook or callback, that the platform sends the request."""
    event_kinds: Annotated[dict[str, NonEmptyStr], _complete("webhook", "callback")]
    callback_url: str
    sent_after: str
    """Label of the operations that cause a callback."""
    expected_response: str
    success_status: str
    """Label of the status of a successful response."""
    error_responses: str
    """Title of the document, or heading of the section, about the bodies of error responses."""
    error_body: str
    """Label of the statuses with which a platform returns the body of an error."""
    error_operations: str
    """Label of the operations that return the body of an error."""


class SetupText(ConfigModel):
    """Text that `apidesk init` writes into platform.toml, with `{name}` for the platform's name."""

    audience: NonEmptyStr
    tone: NonEmptyStr
    greeting: NonEmptyStr
    refusal: NonEmptyStr


class UserText(ConfigModel):
    """All user-facing text in one language."""

    answer: AnswerText
    degraded: Annotated[dict[DegradedReason, NonEmptyStr], _complete(*DegradedReason)]
    """A sentence for each reason why an answer is degraded."""
    suggestions: Annotated[dict[SuggestionKind, NonEmptyStr], _complete(*get_args(SuggestionKind))]
    """Templates of suggested questions. `{name}` is an API, an error code or the subject of a heading.

    In the template `section`, `{title}` is a page's title, and `{name}` a question about a section of the
    page.
    """
    follow_ups: dict[SectionKind, NonEmptyStr]
    """Templates of questions about the sections of an API. `{name}` is the name of the API."""
    chat: ChatText
    api_document: SectionLabels
    admonitions: dict[str, str]
    """Titles of admonitions that have no title of their own, by kind; an empty text means no title."""
    languages: Annotated[dict[Language, NonEmptyStr], _complete(*LANGUAGES)]
    """The names of the languages, for prompts and API descriptions."""
    setup: SetupText
    page: dict[str, NonEmptyStr]
    """Texts of the question page; the keys are the names that its scripts use."""
    admin: dict[str, NonEmptyStr]
    """Texts of the admin page, in addition to those of the question page."""

    def degraded_sentence(self, reason: str) -> str:
        """Return the sentence for `reason`, or `reason` itself if it is not a DegradedReason.

        Servers of earlier versions send free text, and old records contain it.
        """
        return self.degraded[DegradedReason(reason)] if reason in self.degraded else reason


@cache
def user_text(language: Language) -> UserText:
    """Return all user-facing text in `language`. Raises ConfigurationError if the file is incomplete."""
    path = Path(__file__).with_name("text") / f"{language}.toml"
    try:
        return UserText.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"]))
        problem = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigurationError(f"prompts/text/{path.name}: {key}: {problem}") from None


def language_choices() -> str:
    """Return the names of all languages in English, such as `Chinese or English`, for API descriptions."""
    *others, last = (user_text("en").languages[language] for language in LANGUAGES)
    return f"{', '.join(others)} or {last}"


def all_user_texts() -> tuple[UserText, ...]:
    """Return the user-facing text of each language."""
    return tuple(user_text(language) for language in LANGUAGES)
