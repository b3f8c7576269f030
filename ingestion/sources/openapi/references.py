"""Loads the documents of an OpenAPI description and resolves their `$ref`s, within limits.

A description consists of a main document and the documents to which its `$ref`s lead.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

from ingestion.sources.fetch import Downloader
from ingestion.sources.folder import check_size
from ingestion.sources.openapi.json_yaml import parse_json_or_yaml
from schemas.errors import SourceError
from schemas.platform import OpenApiSourceConfig, SourceLimits

MAX_DOCUMENTS = 300
"""Maximum number of documents in one description."""

MAX_REFERENCE_HOPS = 50
"""A chain of this many `$ref`s or more is not resolved."""

_REFERENCE_TEXTS = ("summary", "description")
"""Keys that an object with a `$ref` may also have. Their values replace those of the target."""

_MAX_QUOTED_CHARS = 120
"""Maximum length of quoted text in an error message, in characters."""

# Opaque because an OpenAPI document is not a JSON Schema: `$id` and `$anchor` have no meaning in it.
_OPAQUE: Specification[object] = Specification.OPAQUE


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a description, of any JSON type. Missing values are nodes of None."""

    value: object
    base: str
    """URL of the document that contains the value."""
    documents: "DescriptionDocuments"

    def __getitem__(self, key: str) -> "Node":
        """Return the node of the value of `key`.

        The value is None if this node is not an object, or has no such key.
        """
        return Node(self._get(key), self.base, self.documents)

    def _get(self, key: str) -> object:
        return self.value.get(key) if isinstance(self.value, dict) else None

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    @property
    def is_object(self) -> bool:
        """Whether the value is a JSON object."""
        return isinstance(self.value, dict)

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the keys and nodes of an object; yield nothing for other values."""
        if isinstance(self.value, dict):
            for key, inner in self.value.items():
                yield key, Node(inner, self.base, self.documents)

    def elements(self) -> Iterator["Node"]:
        """Yield the elements of a list; yield nothing for other values."""
        if isinstance(self.value, list):
            for inner in self.value:
                yield Node(inner, self.base, self.documents)

    def text(self, key: str) -> str:
        """Return the string or number of `key` as text; empty for anything else."""
        inner = self._get(key)
        if isinstance(inner, bool) or not isinstance(inner, str | int | float):
            return ""
        return str(inner).strip()

    def is_true(self, key: str) -> bool:
        """Return whether the value of `key` is true or the string `true`."""
        inner = self._get(key)
        return inner is True or inner == "true"

    @property
    def reference(self) -> str | None:
        """The value of `$ref`; None if there is no `$ref`."""
        reference = self._get("$ref")
        return reference if isinstance(reference, str) else None

    def resolve(self) -> "Node":
        """Return the target of the node's `$ref`, or the node itself if there is no `$ref`.

        As OpenAPI 3.1 requires, the node's own `summary` and `description` replace those of the target.
        Raises SourceError.
        """
        node, texts = self, dict[str, str]()
        for _ in range(MAX_REFERENCE_HOPS):
            reference = node.reference
            if reference is None:
                return node._with_texts(texts)
            texts = {key: text for key in _REFERENCE_TEXTS if (text := node.text(key))} | texts
            node = node.documents.lookup(node.base, reference)
        raise SourceError(
            f"$ref {quote_text(self.reference or '')} is circular, or leads through too many others"
        )

    def _with_texts(self, texts: Mapping[str, str]) -> "Node":
        """Return the node with the values of `texts` instead of its own."""
        if not texts or not isinstance(self.value, dict):
            return self
        return Node({**self.value, **texts}, self.base, self.documents)


class DescriptionDocuments:
    """Loads the documents of one description, each of them once."""

    def __init__(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        """Prepare to load documents on demand. Raises SourceError if the URL of `source` is invalid."""
        self.limits = limits
        self.loader = _open_loader(source, limits)
        self.loaded: dict[str, Resource[object] | SourceError] = {}
        self.registry: Registry[object] = Registry(retrieve=self._retrieve)  # type: ignore[call-arg]

    def root(self) -> Node:
        """Load the main document. Raises SourceError if it cannot be loaded or parsed."""
        data, address = self.loader.main_document()
        contents = parse_json_or_yaml(data, self.limits)
        self.loaded[address] = _OPAQUE.create_resource(contents)
        return Node(contents, address, self)

    def lookup(self, base: str, reference: str) -> Node:
        """Return the target of a `reference` in the document at `base`.

        The target may be in another document. Raises SourceError if the reference cannot be resolved within
        the limits.
        """
        try:
            address = urljoin(base, reference.partition("#")[0])
            target = self.registry.resolver(base).lookup(reference)
        except Unresolvable as error:
            raise SourceError(f"$ref {quote_text(reference)} {_reason(error)}") from None
        except (ValueError, TypeError, LookupError, RecursionError):
            raise SourceError(f"$ref {quote_text(reference)} cannot be resolved") from None
        # OpenAPI 3.1 allows true and false as schemas.
        if not isinstance(target.contents, dict | bool):
            raise SourceError(
                f"$ref {quote_text(reference)} resolves to neither an object nor a boolean"
            )
        return Node(target.contents, address, self)

    def _retrieve(self, address: str) -> Resource[object]:
        if address not in self.loaded:
            self.loaded[address] = self._load(address)
        resource = self.loaded[address]
        if isinstance(resource, SourceError):
            raise resource
        return resource

    def _load(self, address: str) -> Resource[object] | SourceError:
        if len(self.loaded) >= MAX_DOCUMENTS:
            return SourceError(f"exceeds the limit of {MAX_DOCUMENTS} documents")
        try:
            contents = parse_json_or_yaml(self.loader.document(address), self.limits)
        except SourceError as error:
            return error
        return _OPAQUE.create_resource(contents)


class _FileLoader:
    """Loads the files of a description.

    The files that the description refers to must be below `folder`, by default the folder of `path`.
    """

    def __init__(self, path: Path, folder: Path | None, limits: SourceLimits) -> None:
        self.path = path
        self.folder = (folder or path.parent).resolve()
        self.limits = limits
        self.bytes_loaded = 0

    def main_document(self) -> tuple[bytes, str]:
        """Load the main file, and return its content and URL.

        The file may be outside the folder, because its path comes from platform.toml and can be trusted.
        """
        path = self.path.resolve()
        return self._data(path), path.as_uri()

    def document(self, address: str) -> bytes:
        parts = urlsplit(address)
        if parts.scheme != "file" or parts.netloc:
            raise SourceError("points to another host, but the description is a file")
        try:
            path = Path(unquote(parts.path)).resolve()
        except (OSError, ValueError, RuntimeError):  # circular symbolic links, invalid names
            raise SourceError("no such file") from None
        if not path.is_relative_to(self.folder):
            raise SourceError("points outside the source folder")
        return self._data(path)

    def _data(self, path: Path) -> bytes:
        try:
            if path.is_dir():
                raise SourceError("is a folder; an OpenAPI description must be a file")
            if not path.is_file():
                raise SourceError("no such file")
            size = path.stat().st_size
            check_size(size + self.bytes_loaded, self.limits)
            with path.open("rb") as file:
                data = file.read(self.limits.file_bytes + 1)
        except (OSError, ValueError) as error:
            raise SourceError(str(getattr(error, "strerror", None) or "no such file")) from None
        check_size(len(data) + self.bytes_loaded, self.limits)
        self.bytes_loaded += len(data)
        return data


class _HttpLoader:
    """Downloads the documents of a description, which must all have the same origin."""

    def __init__(self, url: str, limits: SourceLimits) -> None:
        self.url = url
        self.downloader = Downloader(url, limits)

    def main_document(self) -> tuple[bytes, str]:
        download = self.downloader.get(self.url)
        return download.data, download.url.partition("#")[0]

    def document(self, address: str) -> bytes:
        return self.downloader.get(address).data


def _open_loader(source: OpenApiSourceConfig, limits: SourceLimits) -> _FileLoader | _HttpLoader:
    if source.path is not None:
        return _FileLoader(source.path, source.root, limits)
    return _HttpLoader(source.url or "", limits)


def _reason(error: BaseException) -> str:
    """Return the end of an error message: "cannot be resolved", with the loader's error if there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, SourceError):
            return f"cannot be resolved: {cause}"
        cause = cause.__cause__
    return "cannot be resolved"


def quote_text(text: str) -> str:
    """Return `text` in quotes for a message, shortened and with unprintable characters as spaces."""
    short = text if len(text) <= _MAX_QUOTED_CHARS else text[:_MAX_QUOTED_CHARS] + "…"
    return "'" + "".join(char if char.isprintable() else " " for char in short) + "'"
