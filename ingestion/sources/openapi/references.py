"""The documents that a description is made of, and the `$ref`s between them, within bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

from ingestion.sources.folder import check_size
from ingestion.sources.openapi.fetch import Downloader
from ingestion.sources.openapi.json_yaml import parse
from schemas.errors import SourceError
from schemas.source import OpenApiSourceConfig, SourceLimits

MOST_DOCUMENTS = 300
"""Documents that one description may be spread over."""

MOST_HOPS = 50
"""`$ref`s that lead to nothing but a `$ref`."""

_LONGEST_SHOWN = 120

# Opaque: an OpenAPI document is no JSON Schema, and `$id` and `$anchor` mean nothing in it.
_OPAQUE: Specification[object] = Specification.OPAQUE


@dataclass(frozen=True, slots=True)
class Node:
    """A value somewhere in a description, of whatever type, that knows where it stands."""

    value: object
    base: str
    """The address of its document."""
    documents: "DescriptionDocuments"

    def __getitem__(self, key: str) -> "Node":
        """What stands under `key`; a node of None where nothing does."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(inner, self.base, self.documents)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    @property
    def is_table(self) -> bool:
        """Whether anything can stand under a key of it."""
        return isinstance(self.value, dict)

    def fields(self) -> Iterator[tuple[str, "Node"]]:
        """Keys and what stands under them; nothing for what is no table."""
        if isinstance(self.value, dict):
            for key, inner in self.value.items():
                yield key, Node(inner, self.base, self.documents)

    def elements(self) -> Iterator["Node"]:
        """What a list holds; nothing for what is no list."""
        if isinstance(self.value, list):
            for inner in self.value:
                yield Node(inner, self.base, self.documents)

    def text(self, key: str) -> str:
        """The text under `key`, a number's too; empty where there is none."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(inner, bool) or not isinstance(inner, str | int | float):
            return ""
        return str(inner).strip()

    def flag(self, key: str) -> bool:
        """Whether `true` stands under `key`."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        return inner is True or inner == "true"

    @property
    def reference(self) -> str | None:
        """Its `$ref`."""
        reference = self.value.get("$ref") if isinstance(self.value, dict) else None
        return reference if isinstance(reference, str) else None

    def followed(self) -> "Node":
        """What its `$ref` leads to in the end; itself without one. Raises SourceError."""
        node = self
        for _ in range(MOST_HOPS):
            reference = node.reference
            if reference is None:
                return node
            node = node.documents.lookup(node.base, reference)
        raise SourceError(f"$ref {shown(self.reference or '')} leads in a circle")


class DescriptionDocuments:
    """Reads the documents of one description, each once."""

    def __init__(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        """Reads nothing yet. Raises SourceError for an address that is none."""
        self.limits = limits
        self.reader = _reader(source, limits)
        self.read: dict[str, Resource[object] | SourceError] = {}
        self.registry: Registry[object] = Registry(retrieve=self._retrieve)  # type: ignore[call-arg]

    def root(self) -> Node:
        """The description itself. Raises SourceError."""
        data, address = self.reader.root()
        contents = parse(data, self.limits)
        self.read[address] = _OPAQUE.create_resource(contents)
        return Node(contents, address, self)

    def lookup(self, base: str, reference: str) -> Node:
        """What `reference` stands for in the document at `base`.

        Raises SourceError, which shows the reference, when it leads nowhere or out of bounds.
        """
        try:
            address = urljoin(base, reference.partition("#")[0])
            found = self.registry.resolver(base).lookup(reference)
        except Unresolvable as error:
            raise SourceError(f"$ref {shown(reference)} {_reason(error)}") from None
        except (ValueError, TypeError, LookupError, RecursionError):
            raise SourceError(f"$ref {shown(reference)} points to nothing") from None
        if not isinstance(found.contents, dict | bool):  # 3.1 has true and false for schemas
            raise SourceError(f"$ref {shown(reference)} points to nothing that can stand there")
        return Node(found.contents, address, self)

    def _retrieve(self, address: str) -> Resource[object]:
        if address not in self.read:
            self.read[address] = self._loaded(address)
        found = self.read[address]
        if isinstance(found, SourceError):
            raise found
        return found

    def _loaded(self, address: str) -> Resource[object] | SourceError:
        if len(self.read) >= MOST_DOCUMENTS:
            return SourceError(f"is one document more than {MOST_DOCUMENTS}")
        try:
            contents = parse(self.reader.document(address), self.limits)
        except SourceError as error:
            return error
        return _OPAQUE.create_resource(contents)


class _Files:
    """A description in files, all of them below one folder."""

    def __init__(self, path: Path, root: Path | None, limits: SourceLimits) -> None:
        self.path = path
        self.folder = (root or path.parent).resolve()
        self.limits = limits
        self.bytes = 0

    def root(self) -> tuple[bytes, str]:
        """The description's own file needs not lie below the folder: it is not named by a stranger."""
        path = self.path.resolve()
        return self._data(path), path.as_uri()

    def document(self, address: str) -> bytes:
        parts = urlsplit(address)
        if parts.scheme != "file" or parts.netloc:
            raise SourceError("leads to another host, and the description is a file")
        try:
            path = Path(unquote(parts.path)).resolve()
        except (OSError, ValueError, RuntimeError):  # links in a circle, names that no file has
            raise SourceError("points to nothing") from None
        if not path.is_relative_to(self.folder):
            raise SourceError("leads out of the source's folder")
        return self._data(path)

    def _data(self, path: Path) -> bytes:
        try:
            if not path.is_file():
                raise SourceError("no such file")
            size = path.stat().st_size
            check_size(size, self.limits)
            check_size(size + self.bytes, self.limits)
            with path.open("rb") as file:
                data = file.read(self.limits.file_bytes + 1)
        except (OSError, ValueError) as error:
            raise SourceError(str(getattr(error, "strerror", None) or "no such file")) from None
        check_size(len(data), self.limits)
        self.bytes += len(data)
        return data


class _Web:
    """A description at a url, all of it from that host."""

    def __init__(self, url: str, limits: SourceLimits) -> None:
        self.url = url
        self.downloads = Downloader(url, limits)

    def root(self) -> tuple[bytes, str]:
        found = self.downloads.get(self.url)
        return found.data, found.url.partition("#")[0]

    def document(self, address: str) -> bytes:
        return self.downloads.get(address).data


def _reader(source: OpenApiSourceConfig, limits: SourceLimits) -> _Files | _Web:
    if source.path is not None:
        return _Files(source.path, source.root, limits)
    return _Web(source.url or "", limits)


def _reason(error: BaseException) -> str:
    """Why our own reader gave up, else that there is nothing."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SourceError):
            return f"cannot be followed: {cause}"
        cause = cause.__cause__
    return "points to nothing"


def shown(text: str) -> str:
    """Foreign `text` as it may stand in a line of ours."""
    short = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
    return "'" + "".join(c if c.isprintable() else " " for c in short) + "'"
