"""Opens the Milvus client, converts its errors, reads rows, and builds filters that select chunks."""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.choices import Language
from schemas.document import Chunk
from schemas.errors import ConfigurationError, StoreLocked, StoreUnavailable
from schemas.question import Filters
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")

MilvusRow = dict[str, Any]
"""The values of a row of any Milvus collection, by field name."""

BATCH_ROWS = 256
"""Default maximum number of items in a batch, such as the rows of one write."""

PAGE_ROWS = 4_096
"""Maximum number of rows in a page of `row_pages`; Milvus allows 16,384."""

KEEPALIVE_MS = 3_600_000
"""Milliseconds between pings to Milvus Lite, which the client runs as a local server."""

CONNECT_TIMEOUT_S = 5.0
"""Timeout in seconds of the first connection to a server, and of each reconnection."""

READ_TIMEOUT_S = 10.0
"""Timeout in seconds of each call of one of the `READ_METHODS`."""

READ_METHODS = (
    "Search",
    "Query",
    "HasCollection",
    "DescribeCollection",
    "DescribeAlias",
    "ListAliases",
    "ShowCollections",
    "GetCollectionStatistics",
    "GetVersion",
)
"""Read-only methods of Milvus's gRPC service. pymilvus sets no default timeout for them."""

CONNECT_FAILED_CODE = 2
"""pymilvus's error code for an unreachable server."""

LITE_VERSION_PREFIX = "milvus_lite"
"""Prefix of the version that Milvus Lite reports, whether it opens a local file or runs as a server."""

UNREACHABLE = "Milvus cannot be reached: see APIDESK_MILVUS_URI"

_JSON_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")

log = logging.getLogger(__name__)


def open_milvus(settings: Settings) -> "MilvusClient":
    """Connect to the Milvus server in `settings`, or open the local file in `settings` with Milvus Lite.

    Raises StoreUnavailable if the server does not answer, ConfigurationError if the folder of the file
    cannot be created, and StoreLocked if the file is open in another process or is not a Milvus Lite file.
    """
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    _quiet_pymilvus()
    if settings.embedded:
        make_folder(Path(settings.milvus_uri).parent)
        _use_system_memory_pool()
    token = settings.milvus_token.get_secret_value() if settings.milvus_token else ""
    # Milvus Lite rejects frequent pings: it closes the connection and logs to stderr.
    options = {"grpc.keepalive_time_ms": KEEPALIVE_MS} if settings.embedded else _server_options()
    timeout = None if settings.embedded else CONNECT_TIMEOUT_S
    try:
        client = MilvusClient(
            settings.milvus_uri, token=token, timeout=timeout, grpc_options=options
        )
    except MilvusException as error:
        if settings.embedded:
            raise StoreLocked(
                f"{settings.milvus_uri} is in use by another process, or is not a Milvus Lite file"
            ) from error
        raise StoreUnavailable(UNREACHABLE) from error
    if settings.embedded:
        _delete_index_files(Path(settings.milvus_uri))
    return client


def make_folder(folder: Path) -> None:
    """Create the folder of the store. Raises ConfigurationError if it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"APIDESK_MILVUS_URI: {folder}: {error.strerror}") from None


def is_lite(client: "MilvusClient") -> bool:
    """Return whether the server is Milvus Lite. Raises StoreUnavailable."""
    with milvus_errors():
        return str(client.get_server_version()).startswith(LITE_VERSION_PREFIX)


@contextmanager
def milvus_errors() -> Iterator[None]:
    """Convert errors of pymilvus and gRPC within the block to StoreUnavailable."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        if error.code == CONNECT_FAILED_CODE:
            log.warning("Milvus cannot be reached: %s", _first_line(error))
            raise StoreUnavailable(UNREACHABLE) from error
        raise StoreUnavailable(
            f"Milvus failed (code {error.code}): {_first_line(error)}"
        ) from error
    except RpcError as error:
        log.warning("Milvus does not answer: %s", _first_line(error))
        raise StoreUnavailable(UNREACHABLE) from error


def batches(items: Iterable[T], size: int = BATCH_ROWS) -> Iterator[list[T]]:
    """Yield `items` in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def row_pages(
    client: "MilvusClient", name: str, fields: list[str], expression: str = ""
) -> Iterator[list[MilvusRow]]:
    """Yield pages of the rows of the collection `name`: all rows, or those that match `expression`."""
    rows = client.query_iterator(
        name, batch_size=PAGE_ROWS, filter=expression, output_fields=fields
    )
    try:
        while page := rows.next():
            yield list(page)
    finally:
        rows.close()


def _use_system_memory_pool() -> None:
    """Make Arrow use the system's memory pool. Arrow's default pool keeps 20 MB after reading the store."""
    import pyarrow  # type: ignore[import-untyped]

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())


def _quiet_pymilvus() -> None:
    """Raise the log levels of pymilvus. Importing pymilvus resets them, so import it first."""
    # On every full read, the iterator warns that Milvus Lite reports no timestamp.
    logging.getLogger("pymilvus.client.iterator").setLevel(logging.ERROR)
    # These loggers record each error with a stack trace before it is raised.
    servicer = "milvus_lite.adapter.grpc.servicer"
    for name in ("pymilvus.client.connection_manager", "pymilvus.decorators", servicer):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _delete_index_files(database: Path) -> None:
    """Delete the index files of an open Milvus Lite database. Milvus Lite rebuilds them from the rows.

    A killed process may have left an incomplete index file, which prevents the collection from loading.
    """
    for path in database.glob("collections/*/partitions/*/indexes/*.idx"):
        path.unlink(missing_ok=True)


def _server_options() -> dict[str, Any]:
    """Return gRPC options that set a timeout for reads and make the client reconnect quickly."""
    service = "milvus.proto.milvus.MilvusService"
    reads = {
        "name": [{"service": service, "method": method} for method in READ_METHODS],
        "timeout": f"{READ_TIMEOUT_S}s",
    }
    return {
        "grpc.service_config": json.dumps({"methodConfig": [reads]}),
        "grpc.initial_reconnect_backoff_ms": 200,
        "grpc.max_reconnect_backoff_ms": 1_000,
    }


def _first_line(error: Exception) -> str:
    return next(iter(str(getattr(error, "message", error)).splitlines()), "")[:200]


def literal(value: object) -> str:
    """Return `value` as a literal of a Milvus filter: JSON without the escapes that Milvus rejects."""
    return _JSON_ESCAPE.sub(_supported_escape, json.dumps(value, ensure_ascii=False))


def _supported_escape(escape: re.Match[str]) -> str:
    is_supported = escape[1] in ('"', "\\", "n", "r", "t")
    return escape[0] if is_supported else str(json.loads(f'"{escape[0]}"'))


def ids_filter(ids: Sequence[str]) -> str:
    """Return a filter for the chunks with these ids."""
    return f"id in {literal(list(ids))}"


def documents_filter(documents: Iterable[tuple[str, str]]) -> str:
    """Return a filter for the chunks of `documents`, which are pairs of source and document id.

    The result is empty if `documents` is empty. Do not pass an empty filter to Milvus: it means all chunks.
    """
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)})"
        for source, document in documents
    )


def neighbours_filter(chunks: Iterable[Chunk], distance: int) -> str:
    """Return a filter for the chunks within `distance` positions of one of `chunks` in the same document.

    The result is empty if `chunks` is empty. Do not pass an empty filter to Milvus: it means all chunks.
    """
    return " or ".join(
        f"({documents_filter([chunk.document_key])} and position >= {chunk.position - distance}"
        f" and position <= {chunk.position + distance})"
        for chunk in chunks
    )


def apis_filter(urls: Sequence[str], names: Sequence[str]) -> str:
    """Return a filter for the chunks of the APIs with one of these URLs or names."""
    return f"api_url in {literal(list(urls))} or api_name in {literal(list(names))}"


def language_filter(language: Language) -> str:
    """Return a filter for the chunks of documents in `language`."""
    return f"language == {literal(language)}"


def milvus_filter(filters: Filters) -> str:
    """Return a filter for the chunks that match `filters`.

    Without conditions, the result is empty, which means all chunks.
    """
    fields = [("service_id", filters.service), ("source", filters.source)]
    metadata = [(f"metadata[{literal(name)}]", value) for name, value in filters.metadata.items()]
    conditions = [(name, value) for name, value in [*fields, *metadata] if value is not None]
    return " and ".join(f"{name} == {literal(value)}" for name, value in conditions)
