"""The platform profile: what the desk is for and where its documents lie (platform.toml)."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

Language = Literal["zh", "en"]
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ProfilePart(BaseModel):
    """A table of platform.toml: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Sentences(ProfilePart):
    """A sentence in each language; in platform.toml one string stands for both."""

    zh: Sentence | None = None
    en: Sentence | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, value: object) -> object:
        return {"zh": value, "en": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if not (self.zh or self.en):
            raise PydanticCustomError("missing", "holds no sentence")
        return self


class Voice(ProfilePart):
    """`[platform]`: who speaks, to whom, in which tone."""

    name: Sentence
    description: Sentence
    """What the platform is and what may be asked about it."""
    audience: Sentence
    tone: Sentence
    greeting: Sentences
    refusal: Sentences
    """What an off-topic question is told."""
    language: Language = "zh"

    def say(self, sentences: Sentences, language: Language) -> str:
        """`sentences` in `language`; where it is not there, in the other one."""
        spoken = {"zh": sentences.zh, "en": sentences.en}
        return spoken[language] or sentences.zh or sentences.en or ""


class ApiDocsSource(ProfilePart):
    """A folder of API documents in the JSON format of `schemas.api_document`."""

    name: Sentence
    kind: Literal["api_docs"]
    path: Path
    page_url: str = ""
    """A template over the document's camelCase fields, for documents that name no `pageUrl`."""


class MarkdownSource(ProfilePart):
    """A folder of Markdown pages (.md, .mdx) with YAML front matter."""

    name: Sentence
    kind: Literal["markdown"]
    path: Path
    page_url: str = ""
    """A template over the front matter, `{path}` (relative, without suffix) and `{stem}`."""
    title: str = "title"
    """The front-matter key that holds the title; else the first heading, else the file's name."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Metadata name -> the front-matter key it is read from."""


Source = Annotated[ApiDocsSource | MarkdownSource, Field(discriminator="kind")]


class Platform(ProfilePart):
    """The whole of platform.toml, its paths resolved against the file's own folder."""

    platform: Voice
    sources: tuple[Source, ...] = Field(min_length=1)
