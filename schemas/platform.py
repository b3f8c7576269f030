"""The platform profile: what the desk is for and where its documents lie (platform.toml)."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.base import ConfigModel, NonEmptyStr
from schemas.choices import Language
from schemas.source import SourceConfig


class LocalizedText(ConfigModel):
    """A sentence in each language; in platform.toml one string stands for both."""

    zh: NonEmptyStr | None = None
    en: NonEmptyStr | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, value: object) -> object:
        return {"zh": value, "en": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if not (self.zh or self.en):
            raise PydanticCustomError("missing", "holds no sentence")
        return self


class PlatformInfo(ConfigModel):
    """`[platform]`: who speaks, to whom, in which tone."""

    name: NonEmptyStr
    description: NonEmptyStr
    """What the platform is and what may be asked about it."""
    audience: NonEmptyStr
    tone: NonEmptyStr
    greeting: LocalizedText
    refusal: LocalizedText
    """What an off-topic question is told."""
    language: Language = "zh"
    hosts: tuple[NonEmptyStr, ...] = ()
    """The platform's own hosts, subdomains included: addresses there may stand in an answer where the
    documents hold their path; any other address has to be a page that was retrieved.
    """

    def say(self, sentences: LocalizedText, language: Language) -> str:
        """`sentences` in `language`; where it is not there, in the other one."""
        spoken = {"zh": sentences.zh, "en": sentences.en}
        return spoken[language] or sentences.zh or sentences.en or ""


GlossaryEntry = Annotated[
    tuple[NonEmptyStr, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)
]


class IngestionSchedule(ConfigModel):
    """`[ingestion]`: when documents are indexed without anybody asking."""

    schedule: NonEmptyStr | None = None
    """A cron expression of five fields; without it nothing runs by itself."""
    timezone: NonEmptyStr = "UTC"
    """The zone that the expression is in, such as `Asia/Shanghai`."""
    retries: int = Field(default=2, ge=0, le=10)
    """How often a run that failed is tried again before its next time."""
    retry_seconds: float = Field(default=60, ge=0)
    """How long to wait before each of these."""


class PlatformConfig(ConfigModel):
    """The whole of platform.toml, its paths resolved against the file's own folder."""

    platform: PlatformInfo
    sources: tuple[SourceConfig, ...] = Field(min_length=1)
    ingestion: IngestionSchedule = IngestionSchedule()
    glossary: dict[NonEmptyStr, GlossaryEntry] = Field(default_factory=dict)
    """A term -> what else it is called, in the other language above all; read in both directions."""
