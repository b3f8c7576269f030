"""Reading and cutting files in worker processes."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ingestion import worker_processes
from ingestion.chunking import chunk_document
from ingestion.sources.registry import EmptyFile, FileResult, FileTask, read_source
from ingestion.worker_processes import ChunkedDocument, WorkerProcesses
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, SourceLimits

PAGES = 60


@pytest.fixture
def source(tmp_path: Path) -> MarkdownSourceConfig:
    """A folder of pages, one without a body and one that is refused."""
    for number in range(PAGES):
        sections = "\n\n".join(f"## Part {part}\n\nText {number}.{part}." for part in range(4))
        (tmp_path / f"{number:03}.md").write_text(f"# Page {number}\n\n{sections}\n")
    (tmp_path / "010-empty.md").write_text("# Nothing\n")
    (tmp_path / "020-latin.md").write_bytes(b"# Caf\xe9\n\nText.")
    return MarkdownSourceConfig(kind="markdown", name="guides", path=tmp_path)


def results(source: MarkdownSourceConfig, min_tasks: int) -> list[FileResult]:
    with pytest.MonkeyPatch.context() as patch, WorkerProcesses(400) as workers:
        patch.setattr(worker_processes, "MIN_TASKS", min_tasks)
        patch.setattr(workers, "_count", 2)
        return list(read_source(source, SourceLimits(), run=workers.run))


@pytest.mark.acceptance
def test_processes_give_the_same_results_in_the_same_order(source: MarkdownSourceConfig) -> None:
    here, there = results(source, 10_000), results(source, 10)
    assert list(map(repr, here)) == list(map(repr, there))
    assert sum(isinstance(each, SourceError) for each in there) == 1
    assert sum(isinstance(each, EmptyFile) for each in there) == 1


def test_documents_are_cut_as_without_workers(source: MarkdownSourceConfig) -> None:
    plain = [d for d in read_source(source, SourceLimits()) if isinstance(d, SourceDocument)]
    cut = [d for d in results(source, 10_000) if isinstance(d, ChunkedDocument)]
    assert [list(d.chunks) for d in cut] == [list(chunk_document(d, 400)) for d in plain]


def kill_this_process() -> list[FileResult]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.mark.acceptance
def test_killed_process_is_a_source_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "MIN_TASKS", 1)
    with WorkerProcesses(400) as workers:
        monkeypatch.setattr(workers, "_count", 2)
        with pytest.raises(SourceError, match="killed"):
            list(workers.run(iter([kill_this_process])))
        (result,) = workers.run(iter([partial(list, [SourceError("read")])]))
    assert str(result) == "read"


@pytest.mark.acceptance
def test_first_result_does_not_wait_for_all_files() -> None:
    read = []

    def tasks() -> Iterator[FileTask | FileResult]:
        for number in range(1_000):
            read.append(number)
            yield SourceError(str(number))

    with WorkerProcesses(400) as workers:
        workers._count = 1
        assert str(next(workers.run(tasks()))) == "0"
