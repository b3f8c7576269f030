"""Tests of `make bench-scale`: its documentation, its questions, its CPU times and its tables."""

import os
import sys
from datetime import date
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.document import write_between_markers
from benchmarks.performance.passages import chunks_of
from benchmarks.process_cpu import CommandUsage, cpu_seconds, measure_command
from benchmarks.scale.__main__ import MARKER
from benchmarks.scale.corpus import change_page, page, questions, topic, write_documentation
from benchmarks.scale.peers import TITLES, SystemRetrieval
from benchmarks.scale.report import Results, report
from benchmarks.scale.servers import Serving
from benchmarks.scale.stores import Store
from ingestion.store.schema import chunk_words

pytestmark = pytest.mark.acceptance


def words_of(platform: Path) -> list[str]:
    return [word for chunk in chunks_of(platform) for word in chunk_words(chunk)]


def test_documentation_has_about_the_requested_chunks(tmp_path: Path) -> None:
    chunks = list(chunks_of(write_documentation(tmp_path, 300)))
    assert 270 <= len(chunks) <= 360
    assert {chunk.language for chunk in chunks} == {"en", "zh"}
    assert {chunk.kind for chunk in chunks} >= {"prose"}
    assert any(chunk.api_url for chunk in chunks)


def test_vocabulary_grows_with_the_documentation(tmp_path: Path) -> None:
    small, large = (
        words_of(write_documentation(tmp_path / str(chunks), chunks)) for chunks in (100, 800)
    )
    assert len(set(large)) > 2 * len(set(small))
    assert len(set(large)) < len(large) / 4, "words repeat"


def test_pages_do_not_depend_on_the_size(tmp_path: Path) -> None:
    for chunks in (50, 150):
        write_documentation(tmp_path / str(chunks), chunks)
    first = sorted((tmp_path / "50" / "pages").iterdir())
    assert len(first) >= 3
    for path in first:
        assert (tmp_path / "150" / "pages" / path.name).read_text() == path.read_text()


def test_changed_page_differs_in_one_chunk(tmp_path: Path) -> None:
    platform = write_documentation(tmp_path, 60)
    before = {chunk.id: chunk.content_hash for chunk in chunks_of(platform)}
    change_page(tmp_path, 1)
    after = {chunk.id: chunk.content_hash for chunk in chunks_of(platform)}
    assert len(set(after.items()) - set(before.items())) == 1


def test_questions_are_distinct_and_about_the_pages() -> None:
    texts = list(islice(questions(3), 200))
    assert len(set(texts)) == 200
    assert texts == list(islice(questions(3), 200))
    for text in texts:
        assert max(sum(word in text for word in topic(number).words) for number in range(3)) >= 1


def test_page_contains_most_words_of_its_topic() -> None:
    for number in range(20):
        text, words = page(number).casefold(), topic(number).words
        assert sum(word in text for word in words) > len(words) / 2


def test_cpu_time_includes_ended_children() -> None:
    loop = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {loop!r}])"
    usage = measure_command([sys.executable, "-c", code], {})
    assert 0.3 <= usage.cpu_s < 5
    assert usage.peak_mb > 1
    assert cpu_seconds(os.getpid()) > 0


def test_failed_command_raises_with_its_output() -> None:
    code = "import sys; print('no disk', file=sys.stderr); sys.exit(3)"
    with pytest.raises(RuntimeError, match=r"ended with 3: no disk"):
        measure_command([sys.executable, "-c", code], {})


def serving(chunks: int, ask_s: float, rate: float, workers: int = 1) -> Serving:
    store = Store(
        folder=Path(), platform=Path(), chunks=chunks, terms=chunks * 2, snapshot_mb=2.0,
        record_mb=3.0, first=CommandUsage(chunks / 500, 400.0), changed=CommandUsage(2.0, 300.0),
        unchanged=CommandUsage(1.0, 200.0),
    )  # fmt: skip
    return Serving(
        store, workers, ready_cpu=[2.5], ask_cpu=[ask_s], retrieve=[ask_s / 2], rates=[rate],
        resident_mb=950.0, proportional_mb=800.0,
    )  # fmt: skip


def results(missing: str = "") -> Results:
    systems = [
        SystemRetrieval(title, "", 1, 30.0, [0.1 * place], 700.0)
        for place, title in enumerate(("apidesk", *TITLES.values()), 1)
    ]
    return Results(
        command="make bench-scale",
        day=date(2026, 11, 22),
        cores=2,
        servings=[
            serving(1_000, 0.02, 40.0),
            serving(50_000, 0.05, 30.0),
            serving(50_000, 0.05, 45.0, workers=2),
        ],
        systems=[] if missing else systems,
        missing=missing,
    )


LINES = [
    "CPU per question, 50,000 chunks | 50.0 ms | 1,000 chunks 20.0 ms | 2.5 | at most 2 | **no** |",
    "p50, 50,000 chunks | 100 ms | Haystack, InMemoryBM25Retriever 200 ms | 0.5 | at most 1 | yes |",
    "64 clients, 50,000 chunks | 30.0 | 1,000 chunks 40.0 | 0.75 | at least 0.6 | yes |",
    "after a changed page, CPU, 50,000 chunks | 2.0 s | first run 100 s | 0.02 | at most 0.03 | yes |",
    "| start to ready, CPU, 1,000 chunks | 2.5 s |  | 2.5 | at most 3 s | yes |",
    "| resident memory, 50,000 chunks | 950 MB |  | 950 | at most 900 MB | **no** |",
    "`--workers 2`, 50,000 chunks | 45.0 | one process 30.0 | 1.5 |  | reported |",
    "| first run, CPU ms per chunk | 2.00 | 2.00 | 2.00 |",
    "| `/retrieve`, p50 ms | 10.0 | 25.0 | 25.0 |",
]


def test_report_is_written_into_the_document(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text(f"<!-- {MARKER} -->\n<!-- /{MARKER} -->\n")
    write_between_markers(document, report(results()), MARKER)
    written = document.read_text()
    for line in LINES:
        assert line in written
    assert "Written by `make bench-scale` on 2026-11-22" in written


def test_report_says_why_peers_are_missing() -> None:
    text = report(results(missing="no network."))
    assert "The other frameworks were not measured: no network." in text
    assert "| 25.0 ms | no peer measured |  | at most 1 | not measured |" in text
