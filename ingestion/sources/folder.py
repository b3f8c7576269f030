"""What readers of folders share: listing, reading and page urls."""

import string
from collections.abc import Iterable, Mapping
from pathlib import Path

from schemas.errors import ConfigurationError, SourceError


def list_files(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """Files below `folder` with one of `suffixes`, sorted. Raises SourceError when there are none."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder")
    wanted = set(suffixes)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in wanted)
    if not files:
        raise SourceError(f"{folder}: holds no {' or '.join(sorted(wanted))} file")
    return files


def read_text(path: Path) -> str:
    """The file's text. Raises SourceError that names the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


def page_url(template: str, values: Mapping[str, object]) -> str:
    """`template` with `{name}`s filled in; empty when a name has no value, since half a link is none.

    Raises ConfigurationError for a template with a brace left open.
    """
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        if any(values.get(name) in (None, "") for name in names):
            return ""
        return template.format_map({name: values[name] for name in names})
    except ValueError as error:
        raise ConfigurationError(f"page_url = {template!r}: {error}") from None
