"""Inserts the Markdown files that MDX pages import, and finds partials: files that are only parts of pages.

`import Note from './_note.mdx'` makes `<Note />` stand for the text of that file. A line
`@include 'note.mdx'` stands for the text of a file next to the page or in a folder named `partials`.
"""

import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ingestion.text.components import ATTRIBUTES
from ingestion.text.markdown_blocks import outside_code, replace_outside_code, split_code
from schemas.errors import SourceError

MAX_INSERTED_CHARS = 200_000
"""Maximum number of characters that are inserted into one page."""

_IMPORT = re.compile(
    r"^import[ \t]+(?P<name>[A-Z]\w*)[ \t]+from[ \t]+(?P<quote>['\"])(?P<target>[^'\"\n]+\.mdx?)(?P=quote)"
    r"[; \t]*$\n?",
    re.MULTILINE,
)
_INCLUDE = re.compile(
    r"^(?P<indent>[ \t]*)@include[ \t]+(?P<quote>['\"])(?P<target>[^'\"\n]+\.mdx?)(?P=quote)[ \t]*$",
    re.MULTILINE,
)
_INSERTION = outside_code(
    rf"<(?P<name>[A-Z]\w*){ATTRIBUTES}\s*(?:/>|>\s*</(?P<closed>[A-Z]\w*)\s*>)"
    rf"|(?m-i:{_INCLUDE.pattern})"
)
"""An empty component in a page, `<Note />` or `<Note></Note>`, or an `@include` line."""
_PARTIALS = "partials"
"""The name of the folder of files that `@include` inserts."""
_TAG = re.compile(r"<[^<>]*>")
_INDEX = "_index"
"""The name of Hugo's section pages. Other names that begin with an underscore may belong to partials."""


def without_partials(files: Sequence[Path], folder: Path) -> list[Path]:
    """Return `files` without the partials, which are not pages of their own.

    The name of a partial, or of a folder above it, begins with an underscore. An `.mdx` file with such a
    name is always a partial. An `.md` file with such a name is a partial if a page imports it, or if
    `folder` or its parent contains a Docusaurus configuration. Docusaurus never publishes such files, but
    other generators may.

    The files in folders named `partials` are also partials if a page includes one of them.
    """
    shared = {path for path in files if _PARTIALS in path.relative_to(folder).parts[:-1]}
    if shared and any(file in shared for path in files for file in included_files(path, folder)):
        files = [path for path in files if path not in shared]
    named = {path for path in files if _has_name_of_partial(path.relative_to(folder))}
    if not named:
        return list(files)
    if any(any(base.glob("docusaurus.config.*")) for base in (folder, folder.parent)):
        return [path for path in files if path not in named]
    partials = {path for path in named if path.suffix.lower() == ".mdx"}
    if partials != named:
        partials |= named & {file for path in files for file in included_files(path, folder)}
    return [path for path in files if path not in partials]


def _has_name_of_partial(path: Path) -> bool:
    return path.stem != _INDEX and any(part.startswith("_") for part in path.parts)


def included_files(path: Path, folder: Path) -> list[Path]:
    """Return the files below `folder` that the page at `path` imports or includes.

    The page may import them directly or through other files.
    """
    found: dict[Path, None] = {}
    unread = [path]
    while unread:
        current = unread.pop()
        try:
            data = current.read_bytes()
        except OSError:
            continue
        if b"import" in data or b"@include" in data:
            text = data.decode(errors="ignore")
            files = [*_imports(text, current, folder).values(), *_includes(text, current, folder)]
            unread += [file for file in files if file not in found]
            found |= dict.fromkeys(files)
    return list(found)


def _imports(text: str, path: Path, folder: Path) -> dict[str, Path]:
    """Return the Markdown files that a page imports, by the names of their components."""
    found: dict[str, Path] = {}
    for is_code, part in split_code(text) if "import" in text else ():
        for match in () if is_code else _IMPORT.finditer(part):
            if file := _imported_file(match["target"], path, folder):
                found[match["name"]] = file
    return found


def _includes(text: str, path: Path, folder: Path) -> list[Path]:
    """Return the files that a page inserts with lines such as `@include 'note.mdx'`."""
    parts = (part for is_code, part in split_code(text) if not is_code and "@include" in part)
    matches = (match for part in parts for match in _INCLUDE.finditer(part))
    return [file for match in matches if (file := _included_file(match["target"], path, folder))]


def _included_file(target: str, path: Path, folder: Path) -> Path | None:
    """Return the file that a page at `path` includes; None if there is none below `folder`.

    The file is next to the page, or in a folder named `partials` in the folder of the page or in a folder
    above it.
    """
    above = [base for base in path.parents if base.is_relative_to(folder)]
    targets = (target, *(str(base / _PARTIALS / target) for base in above))
    files = (_file_below(path.parent / each, folder) for each in targets)
    return next(filter(None, files), None)


def _imported_file(target: str, path: Path, folder: Path) -> Path | None:
    """Return the file that a page at `path` imports from `target`; None if no such file is below `folder`.

    A target that begins with `/` or `@site/` is relative to `folder` or to its parent.
    """
    name = target.removeprefix("@site").lstrip("/")
    bases = (path.parent,) if name == target else (folder, folder.parent)
    files = (_file_below(base / name, folder) for base in bases)
    return next(filter(None, files), None)


def _file_below(path: Path, folder: Path) -> Path | None:
    """Return the file at `path`, which may contain `..`; None if no such file is below `folder`."""
    file = Path(os.path.normpath(path))
    is_below = file.is_relative_to(folder) and file.is_file()
    return file if is_below and file.resolve().is_relative_to(folder.resolve()) else None


def insert_imports(path: Path, folder: Path, read: Callable[[Path], str]) -> str:
    """Return the text of a page, with files in place of their components and `@include` lines.

    Only files below `folder` are inserted. `read` returns the text of a file. A component or line stays if
    `read` raises SourceError for its file, if the file inserts itself, or if the text would exceed
    MAX_INSERTED_CHARS. Raises SourceError if `read` raises it for the page itself.
    """
    return _Inserter(folder, read).text_of(path, ())


class _Inserter:
    """Inserts the imported files of one page, up to MAX_INSERTED_CHARS."""

    def __init__(self, folder: Path, read: Callable[[Path], str]) -> None:
        self._folder = folder
        self._read = read
        self._chars_left = MAX_INSERTED_CHARS

    def text_of(self, path: Path, ancestors: tuple[Path, ...]) -> str:
        """Return the text of a file. `ancestors` are the files that contain it, outermost first."""
        text = self._read(path)
        imports = _imports(text, path, self._folder)
        if not imports and "@include" not in text:
            return text
        return "".join(
            part
            if is_code
            else self._insert(
                _IMPORT.sub("", part) if imports else part, imports, (*ancestors, path)
            )
            for is_code, part in split_code(text)
        )

    def _insert(self, text: str, imports: Mapping[str, Path], ancestors: tuple[Path, ...]) -> str:
        def insertion(match: re.Match[str]) -> str:
            file = (
                _included_file(target, ancestors[-1], self._folder)
                if (target := match["target"])
                else imports.get(match["name"])
            )
            if file is None or file in ancestors or match["closed"] not in (None, match["name"]):
                return match[0]
            try:
                inserted = self.text_of(file, ancestors).strip()
            except SourceError:
                return match[0]
            if len(inserted) > self._chars_left:
                return match[0]
            self._chars_left -= len(inserted)
            return _fit_to_place(inserted, match)

        return replace_outside_code(_INSERTION, insertion, text)


def _fit_to_place(inserted: str, place: re.Match[str]) -> str:
    """Return `inserted` in the form that fits `place`, a component or an `@include` line.

    In a table row, `inserted` becomes one line. If the line of a component begins with other text, and
    `inserted` is a single line, `inserted` continues that line. Otherwise, `inserted` becomes a block that
    is indented like the component or line.
    """
    start = place.string.rfind("\n", 0, place.start()) + 1
    before = place.string[start : max(place.start(), place.end("indent"))]
    is_in_line = _TAG.sub("", before).strip() and "\n" not in inserted
    if is_in_line or before.lstrip().startswith("|"):
        return " ".join(inserted.split())
    indent = before[: len(before) - len(before.lstrip())]
    return f"\n\n{textwrap.indent(inserted, indent)}\n\n{indent}"
