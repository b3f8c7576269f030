"""The platform profile: what the desk is for and where its documents lie (platform.toml)."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.language import Language
from schemas.profile_part import ProfilePart, Sentence
from schemas.source import Source


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
    hosts: tuple[Sentence, ...] = ()
    """The platform's own hosts, subdomains included: addresses there may stand in an answer where the
    documents hold their path; any other address has to be a page that was retrieved.
    """

    def say(self, sentences: Sentences, language: Language) -> str:
        """`sentences` in `language`; where it is not there, in the other one."""
        spoken = {"zh": sentences.zh, "en": sentences.en}
        return spoken[language] or sentences.zh or sentences.en or ""


Terms = Annotated[
    tuple[Sentence, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)
]


class IngestionPlan(ProfilePart):
    """`[ingestion]`: when documents are indexed without anybody asking."""

    schedule: Sentence | None = None
    """A cron expression of five fields; without it nothing runs by itself."""
    timezone: Sentence = "UTC"
    """The zone that the expression is in, such as `Asia/Shanghai`."""
    retries: int = Field(default=2, ge=0, le=10)
    """How often a run that failed is tried again before its next time."""
    retry_seconds: float = Field(default=60, ge=0)
    """How long to wait before each of these."""


class Platform(ProfilePart):
    """The whole of platform.toml, its paths resolved against the file's own folder."""

    platform: Voice
    sources: tuple[Source, ...] = Field(min_length=1)
    ingestion: IngestionPlan = IngestionPlan()
    glossary: dict[Sentence, Terms] = Field(default_factory=dict)
    """A term -> what else it is called, in the other language above all; read in both directions."""
