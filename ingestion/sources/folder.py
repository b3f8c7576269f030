"""What readers of folders share: listing, reading and page urls."""

import hashlib
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.source import ApiDocsSourceConfig, PageSourceConfig, SourceLimits

READER_VERSION = 1
"""Raise it when the same file would give another document: files indexed before are read again."""

KnownFiles = Mapping[str, frozenset[str]]
"""Ids of the documents that are indexed already, by fingerprint."""


@dataclass(frozen=True)
class UnchangedFile:
    """A file of which nothing is to be indexed: it is as it was, or makes no document."""

    fingerprint: str
    ids: frozenset[str]
    """Its documents, indexed already."""


FileResult = SourceDocument | UnchangedFile | SourceError
"""A document, or that there is nothing new, or in one line why there is none."""

FolderSource = ApiDocsSourceConfig | PageSourceConfig

PathValues = Mapping[str, object]
"""What `page_url` templates, titles and metadata are made from, by name."""

_INDEX_NAMES = {"index", "_index", "readme"}

_EMPTY_AT_THE_TOP = ("page_path", "folder")
"""Values that a page at the top has not, and its link is whole without them."""


def list_files(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """Files below `folder` with one of `suffixes`, sorted. Raises SourceError when there are none."""
    if not folder.is_dir():
        raise SourceError(f"{folder.name}: no such folder")
    wanted = set(suffixes)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in wanted)
    if not files:
        raise SourceError(f"{folder.name}: holds no {' or '.join(sorted(wanted))} file")
    return files


def read_files(
    source: FolderSource,
    suffixes: Iterable[str],
    limits: SourceLimits,
    known: KnownFiles,
    read: Callable[[Path], SourceDocument | None],
) -> Iterator[FileResult]:
    """What `read` makes of each file of `source`; a file that is refused does not end the run.

    Raises SourceError for a folder that is not there or has no such file.
    """
    how = _how(source)
    for path in list_files(source.path, suffixes):
        try:
            fingerprint = _fingerprint(path, source.path, how, limits)
            document = None if fingerprint in known else read(path)
        except SourceError as error:
            yield SourceError(f"{_name(path, source.path)}: {error}")
            continue
        if document is None:
            yield UnchangedFile(fingerprint, known.get(fingerprint, frozenset()))
        else:
            yield document.model_copy(update={"fingerprint": fingerprint})


def fingerprints(source: FolderSource, suffixes: Iterable[str], limits: SourceLimits) -> list[str]:
    """What tells each file of `source` from every other and from what it was: its content, its name
    and how it is read.

    Raises SourceError for the first file that is refused.
    """
    how = _how(source)
    paths = list_files(source.path, suffixes)
    return [_fingerprint(path, source.path, how, limits) for path in paths]


def read_text(path: Path) -> str:
    """The file's text. Raises SourceError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None


def path_values(path: Path, folder: Path) -> dict[str, object]:
    """The values that every file has by its place below `folder`, as they stand in a url."""
    relative = path.relative_to(folder).with_suffix("")
    page = relative.parent if relative.name.lower() in _INDEX_NAMES else relative
    return {
        "path": quote(relative.as_posix()),
        "page_path": _in_url(page),
        "folder": _in_url(page.parent),
        "stem": quote(path.stem),
        "suffix": path.suffix.lower(),
    }


def _in_url(path: Path) -> str:
    return "" if path == Path() else quote(path.as_posix())


def page_url(templates: Sequence[str], values: PathValues) -> str:
    """The first of `templates` whose `{name}`s all have a value, filled in; else empty, since half a
    link is none.

    Raises ConfigurationError for a template with a brace left open.
    """
    return next(filter(None, (_filled(template, values) for template in templates)), "")


def check_size(size: int, limits: SourceLimits) -> None:
    """Raises SourceError when `size`, in bytes, is more than is taken."""
    if size > limits.file_bytes:
        raise SourceError(
            f"larger than {limits.file_bytes / 1_000_000:g} MB (APIDESK_MAX_FILE_BYTES)"
        )


def _how(source: FolderSource) -> str:
    """What of the program and the profile a file's document depends on."""
    return f"{READER_VERSION}\0{source.model_dump_json(exclude={'path'})}"


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _fingerprint(path: Path, folder: Path, how: str, limits: SourceLimits) -> str:
    """Raises SourceError for a file that is too large, or a link that leads out of `folder`."""
    # Only the last part of a path may be a link: none is followed where files are listed.
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise SourceError("is a link that leads out of the source's folder")
    try:
        check_size(path.stat().st_size, limits)
        key = f"{how}\0{_name(path, folder)}\0".encode()
        return hashlib.sha256(key + path.read_bytes()).hexdigest()
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None


def _filled(template: str, values: PathValues) -> str:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        for name in names:
            if values.get(name) in (None, ""):
                if name not in _EMPTY_AT_THE_TOP:
                    return ""
                template = template.replace(f"{{{name}}}/", "")
        return template.format_map({name: values.get(name, "") for name in names})
    except ValueError as error:
        raise ConfigurationError(f"page_url = {template!r}: {error}") from None
