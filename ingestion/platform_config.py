"""platform.toml -> Platform."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from ingestion.schedule import cron
from schemas.errors import ConfigurationError
from schemas.platform import PlatformConfig
from schemas.source import OpenApiSourceConfig, SourceConfig


def read_platform(path: Path) -> PlatformConfig:
    """The profile at `path`; the paths in it count from the file's own folder.

    Raises ConfigurationError with one line that names the file and each key that is wrong.
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
        raise ConfigurationError(f"{path}: {_problems(error)}") from None
    _check_names(path, platform)
    _check_schedule(path, platform)
    return platform.model_copy(
        update={"sources": tuple(_resolved(path.parent, s) for s in platform.sources)}
    )


def _problems(error: ValidationError) -> str:
    sentences = {
        "missing": "is missing",
        "extra_forbidden": "is not a key that is known here",
    }
    return "; ".join(
        f"{'.'.join(map(str, e['loc']))} {sentences.get(e['type'], '- ' + e['msg'])}"
        for e in error.errors()
    )


def _check_names(path: Path, platform: PlatformConfig) -> None:
    names = [source.name for source in platform.sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: two sources are named {name!r}")


def _check_schedule(path: Path, platform: PlatformConfig) -> None:
    if platform.ingestion.schedule:
        try:
            cron(platform.ingestion, datetime.now(UTC))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None


def _resolved(folder: Path, source: SourceConfig) -> SourceConfig:
    paths = {"path": source.path}
    if isinstance(source, OpenApiSourceConfig):
        paths["root"] = source.root
    return source.model_copy(
        update={name: folder / path for name, path in paths.items() if path is not None}
    )
