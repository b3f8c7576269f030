"""Reads files and splits their documents into chunks in worker processes, one per core.

Parsing Markdown and HTML is most of the work of a run, and a Python process uses only one core. With worker
processes, the main process only compares, embeds and writes chunks.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Self

from ingestion.child_processes import exit_with_parent
from ingestion.chunking import chunk_document
from ingestion.sources.registry import FileResult, FileTask, run_tasks, unexpected_error
from schemas.document import Chunk, SourceDocument
from schemas.errors import SourceError

MIN_TASKS = 300
"""Minimum number of files for which worker processes are used.

Starting a process takes a second of CPU time.
"""

BATCH_TASKS = 8
"""Number of files that are sent to a worker process at a time."""

BATCHES_PER_PROCESS = 3
"""Maximum number of batches in progress per process, which limits the memory for finished documents."""


class ChunkedDocument(SourceDocument):
    """A document that is already split into chunks; its `sections` are empty."""

    chunks: tuple[Chunk, ...]


class WorkerProcesses:
    """Processes that read and split the files of one run. The first source with many files starts them."""

    def __init__(self, chunk_tokens: int) -> None:
        self._chunk_tokens = chunk_tokens
        self._count = _available_cores()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def run(self, tasks: Iterator[FileTask | FileResult]) -> Iterator[FileResult]:
        """Run `tasks` and split their documents into chunks; yield all results in order.

        An item of `tasks` that is not callable is a result already. Without a second core, or for fewer
        than `MIN_TASKS` files, the work is done in this process.
        """
        head, task_count = list[FileTask | FileResult](), 0
        for task in tasks:
            head.append(task)
            task_count += callable(task)
            if task_count == MIN_TASKS:
                break
        tasks = chain(head, tasks)
        if task_count == MIN_TASKS and self._count > 1:
            yield from self._run_in_pool(tasks)
        else:
            yield from _chunked_results(tasks, self._chunk_tokens)

    def _run_in_pool(self, tasks: Iterator[FileTask | FileResult]) -> Iterator[FileResult]:
        """Yield the results of `tasks` in order, with a limited number of batches in progress.

        Raises SourceError if a process is killed; the next source then starts new processes.
        """
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._count, context, initializer=exit_with_parent)
        waiting: deque[Future[list[FileResult]]] = deque()
        try:
            while True:
                while len(waiting) < self._count * BATCHES_PER_PROCESS:
                    batch = list(islice(tasks, BATCH_TASKS))
                    if not batch:
                        break
                    waiting.append(self._pool.submit(_run_batch, batch, self._chunk_tokens))
                if not waiting:
                    return
                yield from waiting.popleft().result()
        except BrokenProcessPool:
            self._pool = None
            raise SourceError("a worker process was killed, perhaps for lack of memory") from None


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run_batch(batch: list[FileTask | FileResult], chunk_tokens: int) -> list[FileResult]:
    return list(_chunked_results(iter(batch), chunk_tokens))


def _chunked_results(
    tasks: Iterator[FileTask | FileResult], chunk_tokens: int
) -> Iterator[FileResult]:
    for result in run_tasks(tasks):
        if isinstance(result, SourceDocument):
            yield to_chunked_document(result, chunk_tokens)
        else:
            yield result


def to_chunked_document(
    document: SourceDocument, chunk_tokens: int
) -> ChunkedDocument | SourceError:
    """Return `document` with its chunks and without its sections, which are no longer needed.

    If the document cannot be split, return a SourceError with the reason.
    """
    try:
        chunks = tuple(chunk_document(document, chunk_tokens))
    except Exception as error:
        return unexpected_error(document.id, error)
    fields = {name: getattr(document, name) for name in SourceDocument.model_fields}
    return ChunkedDocument.model_construct(**fields | {"sections": (), "chunks": chunks})
