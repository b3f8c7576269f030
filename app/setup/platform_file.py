"""A draft as a file: commented, and valid before it is there."""

import json
import os
from contextlib import suppress
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from app.characters import whole_characters
from app.setup.draft import PlatformDraft
from ingestion.profile import read_platform
from schemas.errors import ConfigurationError


def check_free(path: Path, force: bool) -> None:
    """Raises ConfigurationError for a file that is there, and is not to be written over."""
    if path.exists() and not force:
        raise ConfigurationError(f"{path} is there already: --force writes over it")


def write(draft: PlatformDraft, path: Path) -> None:
    """The draft as a platform.toml at `path`, whole or not at all. Raises ConfigurationError."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(render(draft, path.parent), encoding="utf-8")
        read_platform(new)
        new.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def render(draft: PlatformDraft, folder: Path) -> str:
    """The text of a platform.toml that lies in `folder`."""
    environment = Environment(
        loader=PackageLoader("app.setup", ""),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        toml=_toml, comment=_printable, beside=lambda path: _beside(path, folder)
    )
    return environment.get_template("platform.toml.j2").render(draft=draft)


def _toml(value: str | tuple[str, ...]) -> str:
    """A string, or strings, as TOML has them: JSON's escapes are TOML's."""
    if isinstance(value, str):
        return json.dumps(_printable(value), ensure_ascii=False)
    return f"[{', '.join(map(_toml, value))}]"


def _printable(text: str) -> str:
    """`text` on one line, without what TOML does not let stand in a string or a comment."""
    words = " ".join(whole_characters(text).split())
    return "".join(character for character in words if character.isprintable())


def _beside(path: Path, folder: Path) -> str:
    """`path` as it is found from `folder`."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
