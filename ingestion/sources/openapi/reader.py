"""OpenAPI descriptions as sources: one document per operation."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from pydantic import ValidationError

from ingestion.sources.api_docs import api_document
from ingestion.sources.openapi import openapi3, swagger2
from ingestion.sources.openapi.document import ApiDocumentBuilder, first_tag
from ingestion.sources.openapi.operations import Operation, OperationParameter, PathOperation
from ingestion.sources.openapi.paths import parameter_ids, path_operations, refusal
from ingestion.sources.openapi.references import DescriptionDocuments, Node
from ingestion.sources.openapi.schema import SchemaReader
from ingestion.sources.registry import FileResult, KnownFiles
from ingestion.text.language import detect_language
from schemas.choices import Language
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import OpenApiSourceConfig, SourceLimits

MAX_PATH_CHARS = 400
"""Characters of a path or an operationId, which become ids in the collection."""

MAX_URL_BYTES = 4_000
"""UTF-8 bytes of a document's URL; a longer one is left out."""

MAX_PARAMETERS = 500
"""Parameters of one operation that are not part of its body."""

_MAX_LOCATION_CHARS = 40

_LANGUAGE_SAMPLE_CHARS = 200_000
"""Characters from which the language is detected."""


class _Version(Protocol):
    """A module that reads the operations of one version of OpenAPI."""

    def shared_parameters(self, root: Node) -> Node: ...

    def read_parameter(
        self, name: str, location: str, node: Node, is_public: bool
    ) -> OperationParameter: ...

    def read_operation(
        self, root: Node, path_operation: PathOperation, parameters: tuple[OperationParameter, ...]
    ) -> Operation: ...


class OpenApiReader:
    """The SourceReader for OpenAPI descriptions."""

    def read(
        self, source: OpenApiSourceConfig, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield a document per operation, in the order of the description.

        An operation that is refused yields a SourceError. `known` is ignored: a description may
        consist of several files.

        Besides the document's own fields, `page_url` templates may use `{operationId}`, `{tag}` (the
        first one), `{method}` and `{path}` (without its leading slash), all percent-encoded.

        Raises SourceError for a description that cannot be read, ConfigurationError for a malformed
        `page_url`.
        """
        return _Description(source, limits).documents()

    def count_files(self, source: OpenApiSourceConfig) -> None:
        """Return None: the files of a description are unknown before reading it."""

    def fingerprints(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        """Return None: the files of a description are unknown before reading it."""


READER = OpenApiReader()


@dataclass(frozen=True)
class DescriptionSummary:
    """Facts about a description as a whole; empty if the description does not state them."""

    title: str
    description: str
    tags: tuple[str, ...]
    servers: tuple[str, ...]
    """Servers of the first operation."""
    language: Language
    operations: int
    """Number of operations."""


def summarize_openapi(source: OpenApiSourceConfig, limits: SourceLimits) -> DescriptionSummary:
    """Summarize a description without reading all operations. Raises SourceError."""
    return _Description(source, limits).summary()


class _Description:
    """A description, with the state that its operations share."""

    def __init__(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        self.source = source
        self.root = _read_root(source, limits)
        self.version = _detect_version(self.root)
        self.path_operations = list(path_operations(self.root))
        self.common_parameters = self._common_parameters()
        self.reader = SchemaReader(limits.values)
        language = source.language or _detect_description_language(self.root)
        self.builder = ApiDocumentBuilder(self.root, language, self.reader)
        self.ids: set[str] = set()

    def summary(self) -> DescriptionSummary:
        info = self.root["info"]
        valid = [each for each in self.path_operations if isinstance(each, PathOperation)]
        first = [self.version.read_operation(self.root, each, ()) for each in valid[:1]]
        declared = (tag.text("name") for tag in self.root["tags"].elements())
        used = (first_tag(each.node) for each in valid)
        return DescriptionSummary(
            title=info.text("title"),
            description=info.text("description") or info.text("summary"),
            tags=tuple(dict.fromkeys(filter(None, (*declared, *used)))),
            servers=first[0].servers if first else (),
            language=self.builder.language,
            operations=len(valid),
        )

    def documents(self) -> Iterator[FileResult]:
        for path_operation in self.path_operations:
            if isinstance(path_operation, SourceError):
                yield path_operation
                continue
            try:
                yield self._document(path_operation)
            except SourceError as error:
                yield refusal(str(path_operation), str(error))

    def _document(self, path_operation: PathOperation) -> SourceDocument:
        if not path_operation.node.is_object:
            raise SourceError("not an operation object")
        if len(path_operation.path) > MAX_PATH_CHARS:
            raise SourceError(f"path is longer than {MAX_PATH_CHARS} characters")
        parameters = self._parameters(path_operation)
        operation = self.version.read_operation(self.root, path_operation, parameters)
        try:
            api = self.builder.build(operation, self._id(path_operation))
        except ValidationError as error:  # values that no other check covers
            raise SourceError(_first_problem(error)) from None
        document = api_document(self.source, api, _template_values(path_operation))
        self.ids.add(document.id)
        url = _page_url(document.page_url, path_operation)
        return document.model_copy(update={"page_url": url})

    def _id(self, path_operation: PathOperation) -> str:
        """The operationId if no earlier operation has it, else method and path."""
        own = path_operation.node.text("operationId")
        api_id = own if own and len(own) <= MAX_PATH_CHARS else str(path_operation)
        if api_id in self.ids:
            api_id = str(path_operation)
        number = 1
        while api_id in self.ids:
            number += 1
            api_id = f"{path_operation} ({number})"
        return api_id

    def _parameters(self, path_operation: PathOperation) -> tuple[OperationParameter, ...]:
        """The parameters of an operation, which override those of its path.

        A parameter is public if the path declares it for all its operations, or if most operations
        of the description refer to it. Path and body parameters are never public.
        """
        parameters: dict[tuple[str, str], OperationParameter] = {}
        for holder in (path_operation.item, path_operation.node):
            for number, each in enumerate(holder["parameters"].elements()):
                if number >= MAX_PARAMETERS:
                    raise SourceError(f"has more than {MAX_PARAMETERS} parameters")
                node = each.resolve()
                name, location = node.text("name"), node.text("in")
                if not name or not location:
                    continue
                is_shared = (
                    holder is path_operation.item or id(node.value) in self.common_parameters
                )
                is_public = is_shared and location not in ("path", "body")
                parameters[name, location] = self.version.read_parameter(
                    name, location[:_MAX_LOCATION_CHARS], node, is_public
                )
        return tuple(parameters.values())

    def _common_parameters(self) -> set[int]:
        """Object ids of the reusable parameters that most operations refer to."""
        reusable = {id(node.value) for _, node in self.version.shared_parameters(self.root).items()}
        valid = [each for each in self.path_operations if isinstance(each, PathOperation)]
        uses: Counter[int] = Counter()
        for path_operation in valid:
            uses.update(set(parameter_ids(path_operation.node)) & reusable)
        return {each for each, count in uses.items() if count > 1 and count * 2 > len(valid)}


def _read_root(source: OpenApiSourceConfig, limits: SourceLimits) -> Node:
    name = source.path.name if source.path is not None else "the description"
    try:
        return DescriptionDocuments(source, limits).root()
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None


def _detect_version(root: Node) -> _Version:
    if root.text("swagger").startswith("2"):
        return swagger2
    if root.text("openapi").startswith("3"):
        return openapi3
    raise SourceError("not an OpenAPI 3.0, OpenAPI 3.1 or Swagger 2.0 description")


def _template_values(path_operation: PathOperation) -> dict[str, object]:
    values = {
        "operationId": path_operation.node.text("operationId"),
        "tag": first_tag(path_operation.node),
        "method": path_operation.method,
        "path": path_operation.path.lstrip("/"),
    }
    return {name: quote(value) for name, value in values.items()}


def _page_url(from_template: str, path_operation: PathOperation) -> str:
    """Return the URL made from a template, else that of the operation's `externalDocs`."""
    external = path_operation.node["externalDocs"].text("url")
    url = from_template or (external if external.startswith(("http://", "https://")) else "")
    return url if len(url.encode()) <= MAX_URL_BYTES else ""


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def _detect_description_language(root: Node) -> Language:
    """Detect the language of the titles, summaries and descriptions."""
    texts: list[str] = []
    chars_left = _LANGUAGE_SAMPLE_CHARS
    stack = [root.value]
    while stack and chars_left > 0:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, dict):
            fields = [value.get(key) for key in ("title", "summary", "description")]
            strings = [text for text in fields if isinstance(text, str)]
            texts += strings
            chars_left -= sum(map(len, strings)) + 1
            stack.extend(reversed([v for v in value.values() if isinstance(v, dict | list)]))
    return detect_language(" ".join(texts))
