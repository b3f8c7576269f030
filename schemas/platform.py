"""platform.toml: the platform, its sources, schedule and glossary."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import LANGUAGES, Language
from schemas.source import SourceConfig


class LocalizedText(ConfigModel):
    """A sentence per language; in platform.toml one string stands for all languages."""

    # One field per language of `schemas.choices.Language`.
    zh: NonEmptyStr | None = None
    en: NonEmptyStr | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, value: object) -> object:
        return dict.fromkeys(LANGUAGES, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if not (self.zh or self.en):
            raise PydanticCustomError("missing", "has no sentence")
        return self

    def in_language(self, language: Language) -> str:
        """The sentence in `language`, or in another language if it is missing."""
        sentences = (getattr(self, each) for each in (language, *LANGUAGES))
        return next((sentence for sentence in sentences if sentence), "")


class PlatformInfo(ConfigModel):
    """`[platform]`: name, audience and tone of the platform."""

    name: NonEmptyStr
    description: NonEmptyStr
    """The platform and the topics that questions may be about."""
    audience: NonEmptyStr
    tone: NonEmptyStr
    greeting: LocalizedText
    refusal: LocalizedText
    """The reply to an off-topic question."""
    language: Language = "zh"
    hosts: tuple[NonEmptyStr, ...] = ()
    """The platform's own hosts and their subdomains. An answer may link to a path on them that a chunk
    contains; any other link must be a retrieved page.
    """


GlossaryEntry = Annotated[
    tuple[NonEmptyStr, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)
]


class IngestionSchedule(ConfigModel):
    """`[ingestion]`: the schedule of automatic runs."""

    schedule: NonEmptyStr | None = None
    """A cron expression with five fields; None disables automatic runs."""
    timezone: NonEmptyStr = "UTC"
    """The time zone of the expression, such as `Asia/Shanghai`."""
    retries: int = Field(default=2, ge=0, le=10)
    """Retries of a failed run before the next scheduled run."""
    retry_seconds: float = Field(default=60, ge=0)
    """Delay before each retry, in seconds."""


class PlatformConfig(ConfigModel):
    """The contents of platform.toml, with paths resolved against its folder."""

    platform: PlatformInfo
    sources: tuple[SourceConfig, ...] = Field(min_length=1)
    ingestion: IngestionSchedule = IngestionSchedule()
    glossary: dict[NonEmptyStr, GlossaryEntry] = Field(default_factory=dict)
    """Synonyms and translations of terms, applied in both directions."""
