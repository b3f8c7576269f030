"""Runs the ingestion job in separate processes, to be killed by test_kill.

A process that uses Milvus Lite locks its file until the process ends, so each process runs only one job. The
processes are forked from one that has imported everything.
"""

import json
import os
import signal
import time
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from schemas.settings import Settings, read_settings
from tests.chunks import embed
from tests.collections import (
    StoreKind,
    open_collection,
    record_rows,
    snapshot_rows,
    stored_rows,
    stored_words,
)


class CountedWords(Embeddings):
    """An embedding model that counts words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


def fork_server() -> ForkServerContext:
    """Return a multiprocessing context whose processes start with all modules imported."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.killed_job_imports"])
    return context


def _job(settings: Settings, kind: StoreKind) -> Any:
    from ingestion.job import IngestionJob
    from ingestion.runs import IngestionRunStore

    embeddings = CountedWords() if settings.embedding_model else None
    return IngestionJob(
        settings, open_collection(settings, kind), embeddings, IngestionRunStore.open(settings)
    )


def ingest(
    overrides: dict[str, Any], kind: StoreKind, options: dict[str, bool], began: Path
) -> None:
    """Run the job once; create the file `began` when it starts."""
    from schemas.ingestion import IngestionOptions

    job = _job(read_settings(**overrides), kind)
    began.touch()
    job.run(job.new_run("command", IngestionOptions.model_validate(options)))
    os._exit(0)


def repair(
    overrides: dict[str, Any], kind: StoreKind, options: dict[str, bool], target: Path
) -> None:
    """Run the job after a kill and write the result to `target`.

    The result says whether the collection answered before, and contains every row, word and number.
    """
    from schemas.ingestion import IngestionOptions

    settings = read_settings(**overrides)
    job = _job(settings, kind)
    collection = job.collection
    collection.load()
    found = collection.search("how is `do_5` called", 3)
    job.run(job.new_run("command", IngestionOptions.model_validate(options)))
    state = {
        "rows": stored_rows(collection),
        "words": stored_words(collection),
        "catalogue": [entry.model_dump() for entry in collection.catalogue()],
        "manifest": collection.manifest.model_dump(),
    }
    if kind == "embedded":
        rows = state["record"] = record_rows(settings)
        assert rows == snapshot_rows(settings)
        collection.close()
    else:
        state["collections"] = len(collection._client.list_collections())
    runs = [run.state for run in job.runs.latest()]
    target.write_text(json.dumps({"answers": len(found), "state": state, "runs": runs}))
    os._exit(0)


def run(context: ForkServerContext, target: Any, *args: Any) -> int:
    """Run `target` in a process; return its exit code."""
    process = context.Process(target=target, args=args)
    process.start()
    process.join(60)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def kill_after(process: ForkServerProcess, began: Path, seconds: float) -> bool:
    """Kill `process` some seconds after it began; return whether it was still running."""
    while not began.exists() and process.is_alive():
        time.sleep(0.002)
    time.sleep(seconds)
    alive = process.is_alive()
    if alive and process.pid:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return alive
