"""The five questions, asked where they are not answered yet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

import click

from app.cli.setup.platform_file import PlatformDraft, about_of, check_page_url
from app.cli.setup.survey import DocumentSurvey, survey
from schemas.choices import Language
from schemas.errors import ApideskError, ConfigurationError
from schemas.source import SourceLimits

T = TypeVar("T")


@dataclass(frozen=True)
class InterviewAnswers:
    """What was answered on the command line; None is to be asked."""

    documents: str | None
    name: str | None
    about: str | None
    language: Language | None
    page_url: str | None


def interview(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """A draft from what is given and from what is answered at the terminal, where a bad answer is asked
    for again.

    Raises ApideskError for what is given and cannot be used.
    """
    found = _answered(
        "Where are the documents? A folder, or an OpenAPI file or url",
        given.documents,
        lambda where: survey(where, limits),
        "docs",
    )
    click.echo(f"found: {'; '.join(found.holds)}", err=True)
    title = found.summary.title if found.summary else None
    return PlatformDraft(
        survey=found,
        name=_answered("What is the platform called?", given.name, _sentence, title),
        about=_answered(
            "What is it, and what may be asked about it?", given.about, _sentence, about_of(found)
        ),
        language=given.language or _language(found),
        page_url=_answered(
            "A page's url, such as https://docs.example.com/{page_path} (Enter: none)",
            given.page_url,
            check_page_url,
            "",
        ),
    )


def draft_of(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """A draft without a question: what is not given, the documents say.

    Raises ApideskError for what cannot be used, and for documents that do not say it.
    """
    found = survey(given.documents or "", limits)
    if found.summary is None:
        raise ConfigurationError(
            f"{given.documents}: is no OpenAPI description; --documents takes a folder"
        )
    name = given.name or found.summary.title
    if not name.strip():
        raise ConfigurationError("the description has no title: say --name")
    return PlatformDraft(
        survey=found,
        name=_sentence(name),
        about=_sentence(given.about or about_of(found)),
        language=given.language or found.language,
        page_url=check_page_url(given.page_url or ""),
    )


def _answered(question: str, given: str | None, read: Callable[[str], T], default: str | None) -> T:
    if given is not None:
        return read(given)

    def tried(text: str) -> T:
        try:
            return read(text)
        except ApideskError as error:
            raise click.UsageError(str(error)) from None

    found: T = click.prompt(
        question, default=default, show_default=bool(default), value_proc=tried, err=True
    )
    return found


def _language(found: DocumentSurvey) -> Language:
    kinds: click.Choice[Language] = click.Choice(get_args(Language))
    language: Language = click.prompt(
        "Its own language?", default=found.language, type=kinds, err=True
    )
    return language


def _sentence(text: str) -> str:
    said = " ".join(text.split())
    if not said:
        raise ConfigurationError("a few words are needed")
    return said
