"""Reads and checks platform.toml."""

import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ingestion.runs import scheduled_times
from schemas.errors import ConfigurationError
from schemas.platform import OpenApiSourceConfig, PlatformConfig, PlatformInfo, SourceConfig


def read_platform(path: Path) -> PlatformConfig:
    """Return the configuration at `path`; its relative paths are resolved against the file's folder.

    Raises ConfigurationError if the file is unreadable or invalid. If it does not match the schema, the
    message lists every problem.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None
    try:
        platform = PlatformConfig.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_describe_errors(error, tables)}") from None
    _check_source_names(path, platform)
    _check_schedule(path, platform)
    return platform.model_copy(
        update={
            "platform": _resolve_logo(path, platform.platform),
            "sources": tuple(_resolve_paths(path.parent, source) for source in platform.sources),
        }
    )


def _describe_errors(error: ValidationError, tables: dict[str, Any]) -> str:
    messages = {
        "missing": "is missing",
        "extra_forbidden": "is not a known key",
    }
    problems = error.errors()
    # If all items of a list are invalid, pydantic also reports the list as too short. The errors of the
    # items suffice.
    containers = {
        problem["loc"][:end] for problem in problems for end in range(len(problem["loc"]))
    }
    return "; ".join(
        f"{_describe_key(problem['loc'], tables)} {messages.get(problem['type'], '- ' + problem['msg'])}"
        for problem in problems
        if problem["loc"] not in containers
    )


def _describe_key(location: tuple[int | str, ...], tables: dict[str, Any]) -> str:
    """Return the key at `location`, such as ``source `guides`: path`` or `platform.logo`.

    For a source without a name, the result contains its index and kind: `sources.0.markdown.path`.
    """
    match location:
        case ("sources", int(index), *rest) if name := _source_name(tables["sources"][index]):
            key = ".".join(map(str, rest[1:]))  # `rest` begins with the kind
            return f"source `{name}`: {key}" if key else f"source `{name}`"
    return ".".join(map(str, location))


def _source_name(source: object) -> object:
    return source.get("name") if isinstance(source, dict) else None


def _check_source_names(path: Path, platform: PlatformConfig) -> None:
    names = [source.name for source in platform.sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: two sources are named {name!r}")


def _check_schedule(path: Path, platform: PlatformConfig) -> None:
    if platform.ingestion.schedule:
        try:
            # Raises if the schedule is invalid.
            scheduled_times(platform.ingestion, datetime.now(UTC))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None


def _resolve_logo(path: Path, info: PlatformInfo) -> PlatformInfo:
    if info.logo is None:
        return info
    logo = path.parent / info.logo
    if not logo.is_file():
        raise ConfigurationError(f"{path}: platform.logo: {logo} is not a file")
    return info.model_copy(update={"logo": logo})


def _resolve_paths(folder: Path, source: SourceConfig) -> SourceConfig:
    """Return `source` with absolute paths, without `..`, so that they can be compared with other paths.

    Links in a path are followed only if `..` comes after a link and thus leads out of the linked folder.
    """
    paths = {"path": source.path}
    if isinstance(source, OpenApiSourceConfig):
        paths["root"] = source.root
    return source.model_copy(
        update={
            name: _without_parent_steps((folder / path).absolute())
            for name, path in paths.items()
            if path is not None
        }
    )


def _without_parent_steps(path: Path) -> Path:
    normal, real = os.path.normpath(path), os.path.realpath(path)
    return Path(normal if os.path.realpath(normal) == real else real)
