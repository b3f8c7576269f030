"""The connection to Milvus: opening it, its errors as ours, and its filter language.
Which chunks are meant, in Milvus's filter language.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.choices import Language
from schemas.errors import ConfigurationError, StoreLocked, StoreUnavailable
from schemas.question import Filters
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")

log = logging.getLogger(__name__)

BATCH = 256
"""Rows a write."""

PAGE = 4_096
"""Rows a read; Milvus gives at most 16,384."""

HOUR_MS = 3_600_000

CONNECT_SECONDS = 5.0
"""How long a server is waited for, at the start and whenever the connection was lost."""

READ_SECONDS = 10.0
"""How long an answer of a server is waited for, by what only reads."""

READS = (
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
"""What only reads, as Milvus's protocol names it; pymilvus would wait for it without end."""

CONNECT_FAILED = 2
"""Of pymilvus's own codes, the one for a server that is not there."""

UNREACHABLE = "Milvus cannot be reached: see APIDESK_MILVUS_URI"

LITE = "milvus_lite"
"""What the version of Milvus Lite begins with, embedded or as a server."""

_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")
"""An escape in JSON."""


def open_milvus(settings: Settings) -> "MilvusClient":
    """A client of the store in Settings.

    Raises StoreLocked for an embedded store that another process holds, StoreUnavailable for a
    server that does not answer.
    """
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    _quiet_pymilvus()
    if settings.embedded:
        _make_folder(Path(settings.milvus_uri).parent)
        _return_memory()
    token = settings.milvus_token.get_secret_value() if settings.milvus_token else ""
    # Embedded, the client's pings would annoy its own server, which hangs up and says so on stderr.
    options = {"grpc.keepalive_time_ms": HOUR_MS} if settings.embedded else _patience()
    timeout = None if settings.embedded else CONNECT_SECONDS
    try:
        return MilvusClient(settings.milvus_uri, token=token, timeout=timeout, grpc_options=options)
    except MilvusException as error:
        if settings.embedded:
            raise StoreLocked(
                f"{settings.milvus_uri} is in use by another process, or is not a Milvus Lite file"
            ) from error
        raise StoreUnavailable(UNREACHABLE) from error


def is_lite(client: "MilvusClient") -> bool:
    """Whether it is Milvus Lite that answers. Raises StoreUnavailable."""
    with milvus_errors():
        return str(client.get_server_version()).startswith(LITE)


@contextmanager
def milvus_errors() -> Iterator[None]:
    """What pymilvus raises, as StoreUnavailable."""
    from grpc import RpcError
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        if error.code == CONNECT_FAILED:
            log.warning("Milvus cannot be reached: %s", _first_line(error))
            raise StoreUnavailable(UNREACHABLE) from error
        raise StoreUnavailable(
            f"Milvus failed (code {error.code}): {_first_line(error)}"
        ) from error
    except RpcError as error:
        log.warning("Milvus does not answer: %s", _first_line(error))
        raise StoreUnavailable(UNREACHABLE) from error


def literal(value: object) -> str:
    """`value` as a literal of Milvus's filter language: JSON, without the escapes that it lacks."""
    return _ESCAPE.sub(_spelled, json.dumps(value, ensure_ascii=False))


def _spelled(escape: re.Match[str]) -> str:
    known = escape[1] in ('"', "\\", "n", "r", "t")
    return escape[0] if known else str(json.loads(f'"{escape[0]}"'))


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """`items` in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def every_row(
    client: "MilvusClient", name: str, fields: list[str], expression: str = ""
) -> Iterator[list[dict[str, Any]]]:
    """All rows of the collection `name`, page by page; or those of which `expression` is true."""
    rows = client.query_iterator(name, batch_size=PAGE, filter=expression, output_fields=fields)
    try:
        while page := rows.next():
            yield list(page)
    finally:
        rows.close()


def _return_memory() -> None:
    """Arrow, which reads the embedded store's files, would keep 20 MB of what that took."""
    import pyarrow  # type: ignore[import-untyped]

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())


def _quiet_pymilvus() -> None:
    """Importing it resets levels, so this comes after."""
    # Reading all rows it warns that Milvus Lite gives no time of its own.
    logging.getLogger("pymilvus.client.iterator").setLevel(logging.ERROR)
    # Each failure it logs with a stack, and raises it all the same.
    for name in ("pymilvus.client.connection_manager", "pymilvus.decorators"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _patience() -> dict[str, Any]:
    """gRPC's options for a server that may be away: reads end, and it is soon found again."""
    service = "milvus.proto.milvus.MilvusService"
    reads = {
        "name": [{"service": service, "method": method} for method in READS],
        "timeout": f"{READ_SECONDS}s",
    }
    return {
        "grpc.service_config": json.dumps({"methodConfig": [reads]}),
        "grpc.initial_reconnect_backoff_ms": 200,
        "grpc.max_reconnect_backoff_ms": 1_000,
    }


def _first_line(error: Exception) -> str:
    return next(iter(str(getattr(error, "message", error)).splitlines()), "")[:200]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"APIDESK_MILVUS_URI: {folder}: {error.strerror}") from None


ChunkPlace = tuple[str, str, int]
"""Where a chunk stands: source and id of its document, and its position there."""


def with_ids(ids: Sequence[str]) -> str:
    """The chunks with these ids."""
    return f"id in {literal(list(ids))}"


def of_documents(documents: Iterable[tuple[str, str]]) -> str:
    """Those of the documents (source, id); empty for none."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)})"
        for source, document in documents
    )


def at_places(places: Iterable[ChunkPlace]) -> str:
    """Those at these places; empty for none."""
    return " or ".join(
        f"(source == {literal(source)} and document_id == {literal(document)} "
        f"and position == {position})"
        for source, document, position in places
    )


def of_apis(urls: Sequence[str], names: Sequence[str]) -> str:
    """Those of the APIs with one of these urls or names."""
    return f"api_url in {literal(list(urls))} or api_name in {literal(list(names))}"


def in_language(language: Language) -> str:
    """Those of documents in this language."""
    return f"language == {literal(language)}"


def passing(filters: Filters) -> str:
    """Those that `filters` let through; empty for all."""
    wanted = [("service_id", filters.service), ("source", filters.source)]
    metadata = [(f"metadata[{literal(name)}]", value) for name, value in filters.metadata.items()]
    said = [(name, value) for name, value in [*wanted, *metadata] if value is not None]
    return " and ".join(f"{name} == {literal(value)}" for name, value in said)
