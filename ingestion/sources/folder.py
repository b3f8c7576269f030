"""Lists, fingerprints and reads the files of a folder, and makes page URLs from their paths."""

import codecs
import hashlib
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar, get_args
from urllib.parse import quote

from ingestion.sources.page_version import folder_version
from ingestion.sources.registry import (
    FileResult,
    FileTask,
    KnownFiles,
    UnchangedFile,
    file_results,
)
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import ApiDocsSourceConfig, FileSuffix, PageFolderConfig, SourceLimits

READER_VERSION = 62
"""Version of the source readers, part of the fingerprint of each file.

Increment it after a change that makes the same file yield a different document. All files are then read
again.
"""

PageValues = Mapping[str, object]
"""Values of a page by name, used in `page_url` templates, titles and metadata."""

SKIPPED_FOLDERS = {"node_modules", "_modules", "_sources", "_static", "_templates"}
"""Names of folders whose files are not read: installed packages, and files of Sphinx that are not pages.

Folders whose names begin with a dot are not read either.
"""

SKIPPED_FILES = {"_sidebar.md", "_navbar.md", "_coverpage.md", "genindex.html", "py-modindex.html"}
"""Names of files that are not read: the navigation and the cover of docsify, and the indexes of Sphinx."""

MARKDOWN_SUFFIXES = {".md", ".mdx"}
_SUFFIXES_OF_KINDS = {"markdown": MARKDOWN_SUFFIXES, "files": set(get_args(FileSuffix))}
"""Maps kinds of sources to the suffixes of the files that they read."""

_INDEX_NAMES = {"index", "_index", "readme"}

_IGNORED_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0]")
"""Control characters and white space. Browsers ignore some of them before a URL and in its scheme."""
_OTHER_SCHEME = re.compile(
    r"(?!https?:|[\w-]+(?:\.[\w-]+)+:\d{1,5}(?:[/?#]|\Z))[a-z][\w+.-]*:", re.IGNORECASE
)
"""Matches the scheme of a URL unless it is http or https: `javascript:`, but not `example.com:8080`."""
_PROPER_NAME = re.compile(r"\.|[a-z][A-Z]|\Av?\d[\d_-]*\Z")
"""Matches a file name that contains a dot or camel case, or that is a version or date such as `v2`.

Such a file name is the title of its page as it is (see `title_of_name`).
"""

_OPTIONAL_NAMES = ("page_path", "folder", "anchor")
"""Placeholders of a `page_url` template that need no value.

`page_path` is empty for the index page of the top folder, `folder` for a page at the top level, and
`anchor` for text above the first heading of a page.
"""

FolderSource = ApiDocsSourceConfig | PageFolderConfig
FolderT = TypeVar("FolderT", bound=FolderSource)


class FolderReader(Generic[FolderT]):
    """A FileTaskReader for folders of files.

    `suffixes` returns the suffixes that a source accepts, in lower case with the dot. `parse` returns
    the documents of a file, an empty list for a file without content, and None for a file that the
    source skips. If `parse` raises SourceError for a file, the run continues with the next file.
    """

    def __init__(
        self,
        suffixes: Callable[[FolderT], Set[str]],
        parse: Callable[[FolderT, SourceLimits, Path], list[SourceDocument] | None],
    ) -> None:
        self.suffixes = suffixes
        self._parse = parse

    def tasks(
        self, source: FolderT, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileTask | FileResult]:
        """Yield a task for each file that must be parsed, and a result for each other file, in path order.

        A file with a known fingerprint is not parsed. Raises SourceError if the folder is missing or
        contains no matching files.
        """
        source_key = _source_key(source, limits)
        for path in self._list_source_files(source):
            name = _relative_name(path, source.path)
            try:
                fingerprint = self._fingerprint(source, path, source_key, limits)
            except SourceError as error:
                yield SourceError(f"{name}: {error}")
                continue
            if fingerprint in known:
                yield UnchangedFile(fingerprint, known[fingerprint])
            else:
                # Partial functions, unlike lambdas, can be sent to other processes.
                parse = partial(self._parse, source, limits, path)
                yield partial(file_results, name, fingerprint, parse)

    def count_files(self, source: FolderT) -> int:
        """Return the number of files. Raises SourceError as `tasks` does."""
        return len(self._list_source_files(source))

    def fingerprints(self, source: FolderT, limits: SourceLimits) -> list[str]:
        """Return, for each file, a digest of its content, its name and the result of `_source_key`.

        The digest of a Markdown file also covers the files whose text is inserted into it. Raises
        SourceError as `tasks` does, and if a file is unreadable or too large.
        """
        source_key = _source_key(source, limits)
        paths = self._list_source_files(source)
        return [self._fingerprint(source, path, source_key, limits) for path in paths]

    def _list_source_files(self, source: FolderT) -> list[Path]:
        return list_files(source.path, self.suffixes(source))

    def _included_files(self, _source: FolderT, _path: Path) -> list[Path]:
        """Return the files whose text is inserted into the file at `path`.

        None are inserted here; the reader of Markdown overrides this method.
        """
        return []

    def _fingerprint(
        self, source: FolderT, path: Path, source_key: str, limits: SourceLimits
    ) -> str:
        own = _file_digest(path, source.path, source_key, limits)
        included = self._included_files(source, path)
        parts = [own, *(_file_digest(file, source.path, source_key, limits) for file in included)]
        return hashlib.sha256("".join(parts).encode()).hexdigest() if included else own


def list_files(
    folder: Path, suffixes: Iterable[str], read_anyway: Set[str] = frozenset()
) -> list[Path]:
    """Return the files below `folder` with one of `suffixes`, sorted, without skipped files and folders.

    Folders whose names are in `read_anyway` are not skipped. Raises SourceError if there is no such folder
    or no such file.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder.name}: no such folder")
    wanted = set(suffixes)
    files = _find_files(folder, wanted, read_anyway)
    if not files:
        names = " or ".join(sorted(wanted))
        raise SourceError(f"{folder.name}: contains no {names} file{_other_kinds(folder, wanted)}")
    return files


def _find_files(
    folder: Path, suffixes: Set[str], read_anyway: Set[str] = frozenset()
) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in suffixes
        and path.name not in SKIPPED_FILES
        and not any(
            _is_skipped(name)
            for name in path.relative_to(folder).parts[:-1]
            if name not in read_anyway
        )
        and path.is_file()
    )


def _other_kinds(folder: Path, wanted: Set[str]) -> str:
    """Return a clause such as `; kind = "files" reads its .pdf files`; empty if no other kind reads any."""
    clauses = []
    for kind, suffixes in _SUFFIXES_OF_KINDS.items():
        files = [] if suffixes & wanted else _find_files(folder, suffixes)
        if found := sorted({path.suffix.lower() for path in files}):
            clauses.append(f'; kind = "{kind}" reads its {" and ".join(found)} files')
    return "".join(clauses)


def _is_skipped(folder_name: str) -> bool:
    return folder_name.startswith(".") or folder_name in SKIPPED_FOLDERS


def _source_key(source: FolderSource, limits: SourceLimits) -> str:
    """Return the part of a fingerprint that all files of `source` share.

    It contains `READER_VERSION`, the limit `unpacked_bytes`, the version in the path of the source (see
    `folder_version`), and the configuration of the source.
    """
    configuration = source.model_dump_json(exclude={"path"})
    version = folder_version(source.path)
    return f"{READER_VERSION}\0{limits.unpacked_bytes}\0{version}\0{configuration}"


def _relative_name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _file_digest(path: Path, folder: Path, source_key: str, limits: SourceLimits) -> str:
    """Return the digest of a file.

    Raises SourceError if the file is unreadable or too large, or is a symbolic link out of `folder`.
    """
    # Only the last component can be a link: rglob does not follow links to folders.
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise SourceError("symbolic link points outside the source folder")
    try:
        check_size(path.stat().st_size, limits)
        key = f"{source_key}\0{_relative_name(path, folder)}\0".encode()
        return hashlib.sha256(key + path.read_bytes()).hexdigest()
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None


def check_size(size: int, limits: SourceLimits) -> None:
    """Raise SourceError when `size`, in bytes, exceeds the limit for files."""
    if size > limits.file_bytes:
        raise SourceError(
            f"larger than {limits.file_bytes / 1_000_000:g} MB (APIDESK_MAX_FILE_BYTES)"
        )


def read_bytes(path: Path) -> bytes:
    """Return the file's content. Raises SourceError if the file is unreadable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark.

    Raises SourceError if the file is unreadable or has another encoding.
    """
    try:
        with path.open("rb") as file:
            is_utf16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return path.read_text(encoding="utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if is_utf16 else "UTF-8"
        raise SourceError(
            f"not {encoding} (byte {error.start}): convert it, for example with iconv -f gbk -t utf-8"
        ) from None
    except OSError as error:
        raise SourceError(f"{error.strerror}") from None


def path_values(path: Path, folder: Path) -> dict[str, object]:
    """Return the values derived from a file's path below `folder`; `PageFolderConfig` describes them.

    All values except `suffix` are percent-encoded.
    """
    relative = path.relative_to(folder).with_suffix("")
    page = relative.parent if relative.name.lower() in _INDEX_NAMES else relative
    return {
        "path": quote(relative.as_posix()),
        "page_path": _quote_path(page),
        "folder": _quote_path(page.parent),
        "stem": quote(path.stem),
        "suffix": path.suffix.lower(),
    }


def _quote_path(path: Path) -> str:
    return "" if path == Path() else quote(path.as_posix())


def title_of_name(name: str) -> str:
    """Return a page title made from a file name: "Webhook signature" for `_webhook_signature`.

    A name is returned unchanged if it is a version or date (`v2`), or contains a dot, camel case or
    characters other than ASCII.
    """
    if not name.isascii() or _PROPER_NAME.search(name):
        return name
    title = " ".join(re.split("[-_ ]+", name.strip("-_ ")))
    return title[:1].upper() + title[1:] or name


def page_url(templates: Sequence[str], values: PageValues) -> str:
    """Return the first of `templates` whose placeholders all have values, with the values filled in.

    Placeholders in `_OPTIONAL_NAMES` need no value. Returns an empty string if there is no such template,
    because an incomplete link is useless. A URL with a scheme other than http and https is skipped: values
    such as `javascript:...` in a page must not make the link run a script. Raises ConfigurationError for a
    malformed template.
    """
    urls = (fill_template(template, values) for template in templates)
    return next((url for url in urls if url and not _has_other_scheme(url)), "")


def _has_other_scheme(url: str) -> bool:
    return _OTHER_SCHEME.match(_IGNORED_IN_URLS.sub("", url)) is not None


def fill_template(template: str, values: PageValues, *, key: str = "page_url") -> str:
    """Return `template` with the values filled in; empty if a placeholder has no value.

    Placeholders in `_OPTIONAL_NAMES` need no value. Raises ConfigurationError for a malformed template; its
    message names `key`, the key of the template in platform.toml.
    """
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        for name in names:
            if values.get(name) in (None, ""):
                if name not in _OPTIONAL_NAMES:
                    return ""
                template = template.replace(f"{{{name}}}/", "").replace(f"#{{{name}}}", "")
            elif values[name] == "/":  # the top of the site, as in `slug: /` of Docusaurus
                template = re.sub(rf"/\{{{name}\}}/?", "/", template)
        return template.format_map({name: values.get(name, "") for name in names})
    except ValueError as error:
        raise ConfigurationError(f"{key} = {template!r}: {error}") from None
