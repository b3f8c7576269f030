"""Reads documents with LangChain loaders, such as those of langchain-community.

A loader may block, hang or change global state. Therefore, each loader runs in a process of its own. The
process is killed at the time limit and when the run is stopped.
"""

import multiprocessing
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from ingestion.child_processes import exit_with_parent
from ingestion.sources.folder import fill_template
from ingestion.sources.registry import FileResult, KnownFiles, Waiting
from ingestion.sources.remote_pages import (
    MAX_RETRY_DELAY_S,
    Deadline,
    RemotePage,
    read_remote_page,
)
from schemas.errors import SourceError
from schemas.platform import LoaderSourceConfig, SourceLimits
from schemas.settings import read_variable

FIRST_RETRY_S = 1.0
"""Delay before a failed loader is started again, in seconds; it doubles with each failure."""

_TRANSIENT_STATUSES = {408, 425, 429}
_UTF8_BOM = b"\xef\xbb\xbf"
_MAX_MESSAGE_CHARS = 300


@dataclass(frozen=True)
class _LoadedDocument:
    content: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class _Failure:
    """The error that ended a loader."""

    message: str
    is_transient: bool
    """Whether the loader may succeed if it is started again."""
    retry_after_s: float = 0.0
    """Seconds to wait before a retry, from the header `Retry-After`; 0 if it contains no whole number."""


class LoaderReader:
    """The SourceReader for LangChain loaders."""

    def read(
        self, source: LoaderSourceConfig, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield the documents in the loader's order, and a SourceError for each document without an id.

        After a transient error, the loader is started again, and results that an earlier attempt yielded
        are skipped. Raises SourceError after a permanent error, after more than `source.max_errors`
        transient errors, and at the time limit.
        """
        deadline = Deadline(source.timeout_seconds)
        first_attempts: dict[str | int, int] = {}
        for attempt in range(source.max_errors + 1):
            failure: _Failure | None = None
            for result in _load(source, deadline):
                match result:
                    case _LoadedDocument():
                        yield from _page_results(
                            source, limits, known, result, first_attempts, attempt
                        )
                    case _Failure():
                        failure = result
                    case Waiting():
                        yield result
            if failure is None:
                return
            if not failure.is_transient or attempt == source.max_errors:
                raise SourceError(f"the loader failed: {failure.message}")
            delay = max(failure.retry_after_s, FIRST_RETRY_S * 2**attempt)
            yield from deadline.sleep(min(delay, MAX_RETRY_DELAY_S))


READER = LoaderReader()


def _page_results(
    source: LoaderSourceConfig,
    limits: SourceLimits,
    known: KnownFiles,
    loaded: _LoadedDocument,
    first_attempts: dict[str | int, int],
    attempt: int,
) -> Iterator[FileResult]:
    """Yield the results for a loaded document, unless an earlier attempt yielded them.

    `first_attempts` maps the id of each document to the attempt that first yielded it. For a document
    without an id, the key is the hash of the content.
    """
    document_id = fill_template(source.id, loaded.metadata, key="id")
    if first_attempts.setdefault(document_id or hash(loaded.content), attempt) != attempt:
        return
    if not document_id:
        names = ", ".join(loaded.metadata)
        yield SourceError(
            f"a document has no value for id = {source.id!r}; its metadata has {names}"
        )
    else:
        # The byte order mark takes precedence over an encoding that HTML declares.
        data = _UTF8_BOM + loaded.content.encode("utf-8", "replace")
        page = RemotePage(document_id, source.format, data, loaded.metadata)
        yield from read_remote_page(source, limits, known, page)


def _load(
    source: LoaderSourceConfig, deadline: Deadline
) -> Iterator[_LoadedDocument | _Failure | Waiting]:
    """Run the loader in a process. Yield its documents and, if it fails, a _Failure.

    Yields Waiting at short intervals while no document arrives. Raises SourceAbandoned at the deadline.
    """
    with _loader_process(source) as receiver:
        while True:
            started = time.monotonic()
            try:
                result = receiver.recv() if receiver.poll(0.5) else Waiting()
            except (EOFError, OSError):  # OSError if the process ended while it sent a document
                result = _Failure("its process has ended unexpectedly", is_transient=True)
            deadline.spend(started)
            if result is None:
                return
            yield result
            if isinstance(result, _Failure):
                return


@contextmanager
def _loader_process(source: LoaderSourceConfig) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_loader, args=(source, sender), daemon=True)
    process.start()
    sender.close()
    try:
        yield receiver
    finally:
        process.kill()
        process.join()
        receiver.close()


def _run_loader(source: LoaderSourceConfig, sender: Connection) -> None:
    """Load the documents in the child process and send them, then None or a _Failure, to the parent."""
    exit_with_parent()
    warnings.simplefilter("ignore")  # such as the notice when langchain-community is imported
    secrets: list[str] = []
    try:
        arguments = {name: _resolve(value, secrets) for name, value in source.arguments.items()}
        loader = _import(source.loader)(**arguments)
    except Exception as error:
        sender.send(_Failure(_message(error, secrets), is_transient=False))
        return
    try:
        for document in loader.lazy_load():
            metadata = {str(name): _plain(value) for name, value in document.metadata.items()}
            sender.send(_LoadedDocument(document.page_content, metadata))
        sender.send(None)
    except BrokenPipeError:
        return  # the run has ended
    except Exception as error:
        sender.send(_failure(error, secrets))


def _resolve(value: object, secrets: list[str]) -> object:
    """Return a loader's argument, with references replaced by the values to which they refer.

    `{"env": NAME}` refers to an environment variable, `{"import": PATH}` to a Python object, and
    `{"search": PATTERN}` to the `search` method of a regular expression. The values of environment
    variables are added to `secrets`.

    Raises SourceError for a missing variable, ImportError or AttributeError for a missing object, and
    re.error for an invalid pattern.
    """
    match value:
        case {"env": str(name), **rest} if not rest:
            secret = read_variable(name)
            if not secret:
                raise SourceError(f"the environment variable {name} is not set")
            secrets.append(secret)
            return secret
        case {"import": str(name), **rest} if not rest:
            return _import(name)
        case {"search": str(pattern), **rest} if not rest:
            return re.compile(pattern).search
        case dict():
            return {name: _resolve(inner, secrets) for name, inner in value.items()}
        case list():
            return [_resolve(inner, secrets) for inner in value]
        case _:
            return value


def _import(path: str) -> Any:
    """Return the object at a dotted path. The object may be an attribute of a class."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        parent, _, _ = module.rpartition(".")
        if error.name != module or not parent:
            raise
        return getattr(_import(module), name)


def _plain(value: object) -> object:
    """Return a metadata value as nested dictionaries and lists of texts, numbers, booleans and None.

    Any other value becomes its text. An instance of a subclass of `str`, such as a string of a parsed HTML
    document, becomes a plain `str`.
    """
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return str.__str__(value)
    return value if isinstance(value, int | float | bool | None) else str(value)


def _failure(error: Exception, secrets: list[str]) -> _Failure:
    """Return the failure that `error` caused.

    An error is permanent if its attribute `is_transient` is false. An error without this attribute is
    permanent if it has a 4xx status other than 408, 425 and 429.
    """
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(error, "code", None)
    is_client_error = isinstance(status, int) and 400 <= status < 500
    may_succeed = not is_client_error or status in _TRANSIENT_STATUSES
    retry_after = str((getattr(response, "headers", None) or {}).get("Retry-After", ""))
    return _Failure(
        _message(error, secrets),
        is_transient=bool(getattr(error, "is_transient", may_succeed)),
        retry_after_s=float(retry_after) if retry_after.isdecimal() else 0.0,
    )


def _message(error: Exception, secrets: list[str]) -> str:
    """Return the error in one line, without secrets."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, ModuleNotFoundError) and error.name == "langchain_community":
        text += "; run `pip install 'apidesk[loaders]'`"
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_MAX_MESSAGE_CHARS]
