"""Asks the questions of `apidesk init` that the command-line options do not answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

import click

from app.cli.setup.platform_file import PlatformDraft, check_page_url, describe_platform
from app.cli.setup.survey import DocumentSurvey, survey_documents
from schemas.choices import Language
from schemas.errors import ApideskError, ConfigurationError
from schemas.platform import SourceLimits

T = TypeVar("T")


@dataclass(frozen=True)
class InterviewAnswers:
    """The answers on the command line; None for an answer that is not given."""

    documents: str | None
    name: str | None
    about: str | None
    language: Language | None
    page_url: str | None


def interview(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """Ask for the missing answers on the terminal. After an invalid answer, the question is repeated.

    Raises ApideskError for an invalid answer in `given`.
    """
    surveyed = _prompt(
        "Where are the documents? A folder, or an OpenAPI file or url",
        given.documents,
        lambda where: survey_documents(where, limits),
        "docs",
    )
    click.echo(f"found: {'; '.join(surveyed.contents)}", err=True)
    title = surveyed.summary.title if surveyed.summary else None
    return PlatformDraft(
        survey=surveyed,
        name=_prompt("What is the platform called?", given.name, _one_line, title),
        about=_prompt(
            "What is it, and which questions does it cover?",
            given.about,
            _one_line,
            describe_platform(surveyed),
        ),
        language=given.language or _prompt_language(surveyed),
        page_url=_prompt(
            "URL of a page, such as https://docs.example.com/{page_path} (Enter: none)",
            given.page_url,
            check_page_url,
            "",
        ),
    )


def draft_from_openapi(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """Build a draft without asking. Missing answers are taken from the OpenAPI description.

    Raises ApideskError if an answer is invalid, or if an answer is neither given nor found in the
    description.
    """
    surveyed = survey_documents(given.documents or "", limits)
    if surveyed.summary is None:
        raise ConfigurationError(
            f"{given.documents}: not an OpenAPI description; use --documents for a folder"
        )
    name = given.name or surveyed.summary.title
    if not name.strip():
        raise ConfigurationError("the description has no title: pass --name")
    return PlatformDraft(
        survey=surveyed,
        name=_one_line(name),
        about=_one_line(given.about or describe_platform(surveyed)),
        language=given.language or surveyed.language,
        page_url=check_page_url(given.page_url or ""),
    )


def _prompt(question: str, given: str | None, parse: Callable[[str], T], default: str | None) -> T:
    """Parse `given`. If it is None, ask the question on the terminal and parse the answer."""
    if given is not None:
        return parse(given)

    def parse_answer(text: str) -> T:
        try:
            return parse(text)
        except ApideskError as error:
            raise click.UsageError(str(error)) from None

    answer: T = click.prompt(
        question, default=default, show_default=bool(default), value_proc=parse_answer, err=True
    )
    return answer


def _prompt_language(surveyed: DocumentSurvey) -> Language:
    languages: click.Choice[Language] = click.Choice(get_args(Language))
    language: Language = click.prompt(
        "Language of the platform?", default=surveyed.language, type=languages, err=True
    )
    return language


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if not line:
        raise ConfigurationError("the answer must not be empty")
    return line
