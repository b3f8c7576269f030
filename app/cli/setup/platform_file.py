"""Asks for the content of a platform.toml, and writes the file with comments, for `apidesk init`."""

import json
import os
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import click
from jinja2 import Environment, PackageLoader, StrictUndefined

from app.cli.setup.survey import DocumentSurvey, distinct_hosts, survey_documents
from ingestion.platform_config import read_platform
from ingestion.text.language import replace_surrogates
from ingestion.text.typography import insert_name, with_note
from prompts.user_text import user_text
from schemas.choices import LANGUAGES, Language
from schemas.errors import ApideskError, ConfigurationError
from schemas.platform import OpenApiSourceConfig, SourceConfig, SourceLimits

OPERATION_PLACEHOLDERS = frozenset({"operationId", "tag", "method", "apiId", "apiUrl", "serviceId"})
"""Placeholders in URL templates that have a value only for API operations."""

MAX_ABOUT_CHARS = 400
"""Maximum length of the paragraph that `describe_platform` copies, in characters.

A longer paragraph is truncated.
"""

MAX_TAGS = 20
"""Maximum number of tags that `describe_platform` lists."""

T = TypeVar("T")


@dataclass(frozen=True)
class PlatformDraft:
    """The content of a platform.toml."""

    name: str
    about: str
    language: Language
    survey: DocumentSurvey
    page_url: str = ""
    """URL template; empty if pages have no URL."""

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of the API servers and of the pages."""
        servers = self.survey.summary.servers if self.survey.summary else ()
        return distinct_hosts((*servers, self.page_url))

    def page_url_of(self, source: SourceConfig) -> str:
        """Return the URL template for `source`; empty if the template does not fit.

        If the draft has OpenAPI sources and sources of pages, the template fits only one of the two: the
        OpenAPI sources if it has a placeholder such as `{operationId}`, otherwise the sources of pages.
        """
        is_openapi = isinstance(source, OpenApiSourceConfig)
        kinds = {isinstance(other, OpenApiSourceConfig) for other in self.survey.sources}
        for_operations = bool(_placeholders(self.page_url) & OPERATION_PLACEHOLDERS)
        return self.page_url if len(kinds) == 1 or for_operations == is_openapi else ""


def check_page_url(template: str) -> str:
    """Return `template` without surrounding spaces; empty if it is blank.

    Raises ConfigurationError if the template cannot produce links to pages.
    """
    template = template.strip()
    if not template:
        return ""
    if not template.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{template}: the URL of a page must begin with http:// or https://"
        )
    try:
        names = _placeholders(template)
    except ValueError as error:
        raise ConfigurationError(f"{template}: {error}") from None
    if not names:
        raise ConfigurationError(
            f"{template}: no placeholder in braces, so every page would have the same URL"
        )
    return template


def describe_platform(survey: DocumentSurvey) -> str:
    """Return a text about the platform, such as "API of the Example Shop (orders, refunds)".

    The text is `survey.introduction`. If this is empty, the text is made from the OpenAPI description, if
    there is one.
    """
    if survey.introduction or survey.summary is None:
        return replace_surrogates(survey.introduction)
    paragraph = replace_surrogates(survey.summary.description).strip().partition("\n\n")[0]
    about = _shorten(" ".join(paragraph.split())) or survey.summary.title
    topics = ", ".join(survey.summary.tags[:MAX_TAGS])
    return " ".join(with_note(about, topics).split()) if topics else about


def _placeholders(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_ABOUT_CHARS else text[:MAX_ABOUT_CHARS].rsplit(" ", 1)[0] + " …"


def check_overwrite(path: Path, force: bool) -> None:
    """Raise ConfigurationError if `path` exists and `force` is not set."""
    if path.exists() and not force:
        raise ConfigurationError(f"{path} already exists: pass --force to overwrite it")


def write_platform_file(draft: PlatformDraft, path: Path) -> None:
    """Write `draft` to `path`. The new file is validated before it replaces an existing one.

    Raises ConfigurationError if the file is invalid or cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(render(draft, path.parent), encoding="utf-8")
        read_platform(new)
        new.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


@contextmanager
def restore_on_error(path: Path) -> Iterator[None]:
    """Restore the previous content of `path` if a ConfigurationError ends the block.

    If the file did not exist before, the new file is kept.
    """
    previous = path.read_bytes() if path.exists() else None
    try:
        yield
    except ConfigurationError:
        if previous is not None:
            path.write_bytes(previous)
        raise


def render(draft: PlatformDraft, folder: Path) -> str:
    """Return the text of a platform.toml with paths that are relative to `folder`."""
    environment = Environment(
        loader=PackageLoader(__package__, ""),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        toml=_format_toml,
        comment=_printable,
        relative=lambda path: _relative_path(path, folder),
        named=insert_name,
    )
    texts = {language: user_text(language).setup for language in LANGUAGES}
    return environment.get_template("platform.toml.j2").render(draft=draft, texts=texts)


def _format_toml(value: str | tuple[str, ...]) -> str:
    """Format a string or an array of strings as TOML. JSON of a printable string is also valid TOML."""
    if isinstance(value, str):
        return json.dumps(_printable(value), ensure_ascii=False)
    return f"[{', '.join(map(_format_toml, value))}]"


def _printable(text: str) -> str:
    """Return `text` on one line, without unprintable characters, some of which TOML forbids."""
    words = " ".join(replace_surrogates(text).split())
    return "".join(character for character in words if character.isprintable())


def _relative_path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


@dataclass(frozen=True)
class InterviewAnswers:
    """The answers given as command-line options; None if an option is absent."""

    documents: str | None
    name: str | None
    about: str | None
    language: Language | None
    page_url: str | None

    def check(self) -> None:
        """Raise ConfigurationError if `name` or `about` is blank, or `page_url` is invalid.

        The error names the option.
        """
        for option, value in (("--name", self.name), ("--about", self.about)):
            if value is not None and not value.strip():
                raise ConfigurationError(f"{option} must not be blank")
        try:
            check_page_url(self.page_url or "")
        except ConfigurationError as error:
            raise ConfigurationError(f"--page-url: {error}") from None


def interview(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """Ask for the missing answers on the terminal, and return the draft.

    After an invalid answer, the question is repeated. The answers in `given` are checked before the
    documents are read. Raises ApideskError if one of them is invalid.
    """
    given.check()
    survey = _prompt(
        "Where are the documents? A folder, or the file or URL of an OpenAPI description",
        given.documents,
        lambda where: survey_documents(where, limits),
        "docs",
    )
    click.echo(f"found: {'; '.join(survey.contents)}", err=True)
    if survey.left_out:
        click.echo(f"left out: {survey.left_out}", err=True)
    title = survey.summary.title if survey.summary else None
    return PlatformDraft(
        survey=survey,
        name=_prompt("What is the platform called?", given.name, _one_line, title),
        about=_prompt(
            "What is the platform for, and what do the developers who use it ask about?",
            given.about,
            _one_line,
            describe_platform(survey),
        ),
        language=given.language or _prompt_language(survey),
        page_url=_prompt(
            "URL template of pages, such as https://docs.example.com/{page_path} (press Enter for none)",
            given.page_url,
            check_page_url,
            "",
        ),
    )


def draft_from_openapi(given: InterviewAnswers, limits: SourceLimits) -> PlatformDraft:
    """Build a draft without asking. The OpenAPI description supplies a missing name, `about` or language.

    Raises ApideskError if the OpenAPI description cannot be used, or if an answer is invalid or missing.
    """
    given.check()
    survey = survey_documents(given.documents or "", limits)
    if survey.summary is None:
        raise ConfigurationError(
            f"{given.documents}: not an OpenAPI description; for a folder, use --documents instead of "
            "--openapi"
        )
    name = given.name or survey.summary.title
    if not name.strip():
        raise ConfigurationError("the OpenAPI description has no title: pass --name")
    about = given.about or describe_platform(survey)
    if not about:
        raise ConfigurationError(
            "the OpenAPI description says nothing about the platform: pass --about"
        )
    return PlatformDraft(
        survey=survey,
        name=_one_line(name),
        about=_one_line(about),
        language=given.language or survey.language,
        page_url=check_page_url(given.page_url or ""),
    )


def _prompt(question: str, given: str | None, parse: Callable[[str], T], default: str | None) -> T:
    """Parse `given`. If `given` is None, ask `question` on the terminal and parse the answer."""
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


def _prompt_language(survey: DocumentSurvey) -> Language:
    languages: click.Choice[Language] = click.Choice(LANGUAGES)
    language: Language = click.prompt(
        "Language of the platform?", default=survey.language, type=languages, err=True
    )
    return language


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    if not line:
        raise ConfigurationError("the answer must not be blank")
    return line
