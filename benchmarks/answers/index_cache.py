"""Keeps the indexes of the corpora, so that a benchmark indexes a corpus only after a change."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from benchmarks.answers.sets import corpus_files, write_platform
from benchmarks.retrieval_quality import settings_of
from benchmarks.retrieval_sets import ROOT
from ingestion.job import IngestionJob
from schemas.settings import Settings, read_settings

INDEXING_CODE = ("ingestion", "prompts", "schemas")
"""Packages whose code and texts determine an index."""

EMBEDDING_CHARS = 320
"""APIDESK_EMBEDDING_CHARS of an index with vectors."""


@contextmanager
def indexed_settings(name: str, data: Path, cache: Path) -> Iterator[Settings]:
    """Yield settings with an index of the documents of the set `name`, and without a model.

    The index is a copy of the one in `cache`, so that benchmarks can run at the same time. If `cache` does
    not have the index, it is built first. Raises ApideskError.
    """
    kept = cache / f"{name}-{index_digest(name, data)}"
    with _copy_of(kept) as folder:
        if not kept.is_dir():
            _build(settings_of(folder, write_platform(name, data, folder)))
            _keep(folder, kept)
        yield settings_of(folder, write_platform(name, data, folder))


@contextmanager
def embedded_settings(
    name: str, data: Path, cache: Path, embedding_model: str
) -> Iterator[Settings]:
    """Yield settings with an index that also has vectors of `embedding_model`, a `provider:model`.

    The address and the key of the provider are read from the environment. The index in `cache` is
    updated, so that only new and changed chunks are embedded. Raises ApideskError.
    """
    kept = cache / f"{name}-{sha256(embedding_model.encode()).hexdigest()[:16]}"
    with _copy_of(kept) as folder:
        provider = read_settings()
        embedding = {
            "embedding_model": embedding_model,
            "embedding_base_url": provider.embedding_base_url,
            "embedding_api_key": provider.embedding_api_key,
            "embedding_chars": EMBEDDING_CHARS,
        }
        settings = settings_of(folder, write_platform(name, data, folder))
        settings = settings.model_copy(update=embedding)
        _build(settings)
        shutil.rmtree(kept, ignore_errors=True)
        _keep(folder, kept)
        yield settings


@contextmanager
def _copy_of(kept: Path) -> Iterator[Path]:
    """Yield a temporary folder with a copy of `kept`; it is empty if `kept` does not exist."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "index"
        if kept.is_dir():
            shutil.copytree(kept, folder)
        else:
            folder.mkdir()
        yield folder


def index_digest(name: str, data: Path) -> str:
    """Return a digest of what determines the index: the code, the documents and platform.toml."""
    digest = sha256()
    with tempfile.TemporaryDirectory() as folder:
        platform = write_platform(name, data, Path(folder))
        for path in [*_code_files(), *corpus_files(name, data), platform]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _code_files() -> Iterable[Path]:
    """Return the files of the packages in `INDEXING_CODE`, in a stable order."""
    return (
        path
        for package in INDEXING_CODE
        for path in sorted((ROOT / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )


def _build(settings: Settings) -> None:
    job = IngestionJob.connect(settings)
    try:
        job.run(job.new_run("command"))
    finally:
        job.close()
        job.runs.engine.dispose()


def _keep(folder: Path, kept: Path) -> None:
    """Copy the closed index to the cache, which another process may do at the same time."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
        copy = Path(temporary) / "index"
        shutil.copytree(folder, copy)
        try:
            copy.rename(kept)
        except OSError:
            if not kept.is_dir():
                raise
