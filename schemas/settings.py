"""Settings: secrets and addresses, read from the environment (and `.env`) once."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from schemas.errors import ConfigurationError

SAMPLE_PLATFORM = Path(__file__).resolve().parent.parent / "samples" / "platform.toml"
PREFIX = "APIDESK_"

ADMIN_KEY = re.compile(r"[!-~]{32,}")

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?")

EmbedOrigin = Annotated[str, Field(pattern=r"^https?://(\*\.)?[a-z0-9.-]+(:\d+)?$")]
"""A scheme, a host and perhaps a port; `*.` stands for all subdomains. It goes into a header."""


class Settings(BaseSettings):
    """What differs from one installation to the next; each field is `APIDESK_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    chat_model: str = "extractive"
    """`provider:model` as LangChain names it, or `extractive`: no model at all."""

    chat_base_url: str | None = None
    """Address of the chat model's server, where it is not the provider's own."""

    chat_api_key: SecretStr | None = None
    """Key for the chat model; without it the provider's own variable (`OPENAI_API_KEY`) counts."""

    chat_context_tokens: int | None = Field(default=None, ge=1_000)
    """Context window of the chat model; without it what LangChain knows of the model, else 8,192."""

    chat_fallback_model: str | None = None
    """`provider:model` that is asked when the chat model fails."""

    chat_fallback_base_url: str | None = None
    """Address of the fallback model's server, where it is not the provider's own."""

    chat_fallback_api_key: SecretStr | None = None
    """Key for the fallback model; without it the provider's own variable counts."""

    structure_model: str | None = None
    """`provider:model` that classifies, and puts into the schema what the chat model writes freely."""

    structure_base_url: str | None = None
    """Address of the structure model's server, where it is not the provider's own."""

    structure_api_key: SecretStr | None = None
    """Key for the structure model; without it the provider's own variable counts."""

    judge_model: str | None = None
    """`provider:model` that judges each step by what it cites; without it words and numbers decide."""

    judge_base_url: str | None = None
    """Address of the judging model's server, where it is not the provider's own."""

    judge_api_key: SecretStr | None = None
    """Key for the judging model; without it the provider's own variable counts."""

    judge_timeout: float = Field(default=10, gt=0)
    """Seconds that judging may take; after that words and numbers alone decide."""

    on_model_failure: Literal["extractive", "error"] = "extractive"
    """When all models fail: quote the documents and say `degraded`, or answer with the error."""

    unverified: Literal["list", "remove"] = "list"
    """A sentence that states what no cited chunk holds: only list what it states, or remove it too."""

    synthesis: Literal["fit", "refine"] = "fit"
    """More chunks than the window takes: leave out the last ones, or refine the answer part by part."""

    embedding_model: str | None = None
    """`provider:model` for dense retrieval; without it retrieval is full text alone."""

    embedding_base_url: str | None = None
    """Address of the embedding model's server, where it is not the provider's own."""

    embedding_api_key: SecretStr | None = None
    """Key for the embedding model; without it the provider's own variable counts."""

    embedding_batch: int = Field(default=32, ge=1, le=2_048)
    """Texts an embedding request; some providers take no more than ten."""

    embedding_requests: int = Field(default=8, ge=1, le=64)
    """Embedding requests under way at the same time while documents are indexed."""

    retrieval: Literal["auto", "full_text", "dense", "hybrid"] = "auto"
    """Which index answers; `auto` is `hybrid` with an embedding model and `full_text` without."""

    top_k: int = Field(default=5, ge=1, le=50)
    """Chunks retrieved for a question that does not say how many."""

    rerank: Literal["none", "endpoint", "model"] = "none"
    """What puts retrieved chunks in a better order: a reranking `endpoint`, the chat `model`, or `none`."""

    rerank_url: str | None = None
    """Address of a `/rerank` server in the format of Jina, Cohere and vLLM, with or without that ending."""

    rerank_model: str | None = None
    """Name of the endpoint's reranking model; a server with a single one may need none."""

    rerank_api_key: SecretStr | None = None
    """Key for the reranking endpoint."""

    rerank_timeout: float = Field(default=3, gt=0)
    """Seconds that reranking may take; after that the order stays as retrieval gave it."""

    web_search: Literal["tavily"] | None = None
    """`tavily` adds pages of the web to the sources, behind the documents; unset, nothing is asked."""

    web_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("APIDESK_WEB_API_KEY", "TAVILY_API_KEY")
    )
    """Key for the web search; without it Tavily's own variable (`TAVILY_API_KEY`) counts."""

    web_base_url: str | None = None
    """Address of the web search, where it is not Tavily's own."""

    web_results: int = Field(default=3, ge=1, le=10)
    """Pages that a question may bring from the web."""

    web_domains: Annotated[tuple[str, ...], NoDecode] = Field(default=(), max_length=300)
    """Domains that the web search is restricted to, between commas; a domain's subdomains count too."""

    web_timeout: float = Field(default=5, gt=0)
    """Seconds that the web search may take; after that the documents answer alone."""

    tool_rounds: int = Field(default=2, ge=1, le=5)
    """Rounds in which a model may call tools before it answers, where a question asks for tools."""

    tool_timeout: float = Field(default=10, gt=0)
    """Seconds that one round may take; after that the answer is written from what was found so far."""

    milvus_uri: str = "./data/milvus.db"
    """A file for the embedded store, or the address of a Milvus server or cluster."""

    milvus_token: SecretStr | None = None
    """`user:password` or token of the Milvus server."""

    collection: str = Field(default="open_rag", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,200}$")
    """Name (alias) of the Milvus collection."""

    database_url: str = "sqlite:///./data/apidesk.db"
    """Where reports of ingestions and sessions are kept: SQLite, or `postgresql://` (extra `postgres`)."""

    history_turns: int = Field(default=10, ge=0, le=1_000)
    """Questions of a session that are remembered with their answers; 0 remembers none."""

    history_chars: int = Field(default=8_000, ge=1_000)
    """Characters that a session's history may have in all; what is oldest goes first."""

    history_days: int = Field(default=30, ge=1, le=36_500)
    """Days after which a question and its answer are forgotten."""

    cache_answers: bool = True
    """Whether a question that was answered is answered the same until a document changes that it cites."""

    cache_days: int = Field(default=7, ge=1, le=36_500)
    """Days after which a cached answer is made anew all the same."""

    keep_questions: bool = True
    """Whether questions are kept, with what became of them, for insights, replays and feedback."""

    keep_days: int = Field(default=90, ge=1, le=36_500)
    """Days after which a question that was kept is forgotten."""

    spool: Path = Path("./data/spool")
    """Folder for questions on their way to the database; it should outlive the process."""

    platform: Path = SAMPLE_PLATFORM
    """Path of platform.toml, which says what the platform is and where its documents are."""

    embed_origins: Annotated[tuple[EmbedOrigin, ...], NoDecode] = ()
    """Origins of the sites that may show the widget, between commas; without it none may."""

    request_timeout: float = Field(default=60, gt=0)
    """Seconds that one question may take in all."""

    max_concurrency: int = Field(default=32, ge=1, le=10_000)
    """Questions a process answers at once by a model, and calls of models that it makes at once."""

    queue_timeout: float = Field(default=5, ge=0)
    """Seconds that a question beyond those waits before it is answered with 503."""

    workers: int = Field(default=1, ge=1, le=64)
    """Processes of `apidesk serve`; more than one needs a Milvus server."""

    shutdown_timeout: float = Field(default=30, ge=0)
    """Seconds that running answers have to end when the server is told to stop."""

    max_question_chars: int = Field(default=20_000, ge=1)
    """Longer questions are refused with 413."""

    max_body_bytes: int = Field(default=1_000_000, ge=1)
    """Larger request bodies are refused with 413."""

    max_file_bytes: int = Field(default=50_000_000, ge=1)
    """Larger source files and downloads are left out of the index, and said."""

    max_unpacked_bytes: int = Field(default=200_000_000, ge=1)
    """A packed document (docx, pdf) that holds more is left out."""

    max_values: int = Field(default=2_000_000, ge=1)
    """A YAML or JSON document that means more values, aliases counted as often as used, is left out."""

    fetch_timeout: float = Field(default=30, gt=0)
    """Seconds in which a description named by url has to arrive."""

    private_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Hosts at private addresses that a description may be fetched from, between commas."""

    chunk_tokens: int = Field(default=400, ge=50, le=8_000)
    """Soft cap of a chunk of prose, in tokens."""

    admin_key: SecretStr | None = None
    """A key with every scope, of 32 characters or more, for what starts before a key can be made."""

    rate_limit: str | None = None
    """Requests a key, such as `60/minute`; several between semicolons. Unset, any number."""

    rate_limit_address: str | None = None
    """Requests an address, those with a wrong key too. Unset, any number."""

    token_limit: str | None = None
    """Model tokens a key, such as `200000/day`; an address, where no key is needed. Unset, any number."""

    redis_url: SecretStr | None = None
    """A Redis in which several servers count together (extra `redis`); unset, each counts for itself."""

    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Origins whose pages may call the API from a browser, between commas; `*` for all."""

    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    """Addresses or networks of proxies whose X-Forwarded-For is believed, between commas."""

    trace_content: bool = True
    """Whether traces hold texts; `false` leaves names, durations, token usage, ids and scores."""

    otel_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices("APIDESK_OTEL_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    )
    """OpenTelemetry collector that traces go to; without it `OTEL_EXPORTER_OTLP_ENDPOINT` counts."""

    otel_traces_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "APIDESK_OTEL_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        ),
    )
    """As that, with its path; without it `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` counts."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Level of the log on stderr."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """One JSON object a line, or text; `auto` is text on a terminal and JSON elsewhere."""

    @field_validator(
        "private_hosts",
        "web_domains",
        "cors_origins",
        "trusted_proxies",
        "embed_origins",
        mode="before",
    )
    @classmethod
    def _between_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(host.strip().lower() for host in value.split(",") if host.strip())
        return value

    @field_validator("admin_key")
    @classmethod
    def _hard_to_guess(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not ADMIN_KEY.fullmatch(value.get_secret_value()):
            message = "takes at least 32 characters of ASCII, none of them a space"
            raise PydanticCustomError("admin_key", message)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                message = "takes origins such as https://www.example.com, or *"
                raise PydanticCustomError("origin", message)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ip_network(network)
            except ValueError:
                message = "takes addresses such as 10.0.0.7 and networks such as 10.0.0.0/8"
                raise PydanticCustomError("address", message) from None
        return value

    @property
    def embedded(self) -> bool:
        """Whether the store runs in this process (Milvus Lite) rather than on a server."""
        return "://" not in self.milvus_uri

    @property
    def traces_endpoint(self) -> str | None:
        """Where spans are sent; None where no collector is named."""
        if self.otel_traces_endpoint or not self.otel_endpoint:
            return self.otel_traces_endpoint
        return f"{self.otel_endpoint.rstrip('/')}/v1/traces"

    @property
    def collection_id(self) -> str:
        """The collection, told apart from one of the same name in another store."""
        store = str(Path(self.milvus_uri).resolve()) if self.embedded else self.milvus_uri
        return f"{store}#{self.collection}"


def read_settings(**overrides: object) -> Settings:
    """Settings from the environment, `.env` and `overrides` (which win).

    Raises ConfigurationError that names each variable that cannot be used.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        problems = (
            f"{PREFIX}{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()
        )
        raise ConfigurationError("; ".join(problems)) from None


@contextmanager
def variable_if_unset(name: str, value: str) -> Iterator[None]:
    """Within the block this process and those it starts find `value`, unless the variable was set."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
