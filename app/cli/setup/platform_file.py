"""What a platform.toml is going to say.
A draft as a file: commented, and valid before it is there.
"""

import json
import os
import string
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.cli.setup.survey import DocumentSurvey, hosts_of
from ingestion.platform_config import read_platform
from ingestion.text.language import whole_characters
from schemas.choices import Language
from schemas.errors import ConfigurationError
from schemas.source import OpenApiSourceConfig, SourceConfig

OF_OPERATIONS = frozenset({"operationId", "tag", "method", "apiId", "apiUrl", "serviceId"})
"""What only an operation has: a template that names one is no page's."""

LONGEST_ABOUT = 400
"""Characters of what a description says the platform is."""

MOST_TAGS = 20


@dataclass(frozen=True)
class PlatformDraft:
    """What is known of the platform."""

    name: str
    about: str
    language: Language
    survey: DocumentSurvey
    page_url: str = ""
    """A template, or nothing."""

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The platform's own: where its API is called, and where its pages lie."""
        servers = self.survey.summary.servers if self.survey.summary else ()
        return hosts_of((*servers, self.page_url))

    def page_url_of(self, source: SourceConfig) -> str:
        """The template, for the source that it is meant for: operations, or pages where there are any."""
        operations = isinstance(source, OpenApiSourceConfig)
        only_one = len({isinstance(each, OpenApiSourceConfig) for each in self.survey.sources}) == 1
        meant = bool(_names(self.page_url) & OF_OPERATIONS)
        return self.page_url if only_one or meant == operations else ""


def check_page_url(template: str) -> str:
    """The template. Raises ConfigurationError for one that makes no links."""
    template = template.strip()
    if not template:
        return ""
    if not template.startswith(("http://", "https://")):
        raise ConfigurationError(f"{template}: a page's url begins with http:// or https://")
    try:
        names = _names(template)
    except ValueError as error:
        raise ConfigurationError(f"{template}: {error}") from None
    if not names:
        raise ConfigurationError(
            f"{template}: names nothing in braces, so that every page would have the same url"
        )
    return template


def about_of(survey: DocumentSurvey) -> str:
    """What the documents say the platform is; empty where they do not."""
    if survey.summary is None:
        return ""
    first = whole_characters(survey.summary.description).strip().partition("\n\n")[0]
    said = _shortened(" ".join(first.split())) or survey.summary.title
    topics = ", ".join(survey.summary.tags[:MOST_TAGS])
    return " ".join(f"{said} ({topics})".split()) if topics else said


def _names(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(template) if name)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_ABOUT else text[:LONGEST_ABOUT].rsplit(" ", 1)[0] + " …"


def check_free(path: Path, force: bool) -> None:
    """Raises ConfigurationError for a file that is there, and is not to be written over."""
    if path.exists() and not force:
        raise ConfigurationError(f"{path} is there already: --force writes over it")


def write(draft: PlatformDraft, path: Path) -> None:
    """The draft as a platform.toml at `path`, whole or not at all. Raises ConfigurationError."""
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


def render(draft: PlatformDraft, folder: Path) -> str:
    """The text of a platform.toml that lies in `folder`."""
    environment = Environment(
        loader=PackageLoader("app.cli.setup", ""),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        toml=_toml, comment=_printable, beside=lambda path: _beside(path, folder)
    )
    return environment.get_template("platform.toml.j2").render(draft=draft)


def _toml(value: str | tuple[str, ...]) -> str:
    """A string, or strings, as TOML has them: JSON's escapes are TOML's."""
    if isinstance(value, str):
        return json.dumps(_printable(value), ensure_ascii=False)
    return f"[{', '.join(map(_toml, value))}]"


def _printable(text: str) -> str:
    """`text` on one line, without what TOML does not let stand in a string or a comment."""
    words = " ".join(whole_characters(text).split())
    return "".join(character for character in words if character.isprintable())


def _beside(path: Path, folder: Path) -> str:
    """`path` as it is found from `folder`."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
