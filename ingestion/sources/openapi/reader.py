"""Reads OpenAPI descriptions as sources.

There is a document for each operation, webhook and callback, one for the whole API, and one for the bodies
of error responses that several operations share.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from ingestion.sources.api_docs import api_document
from ingestion.sources.markdown import markdown_content
from ingestion.sources.openapi.document import ApiDocumentBuilder, first_tag, operation_name
from ingestion.sources.openapi.error_bodies import ErrorBodies
from ingestion.sources.openapi.events import event_document, event_operations
from ingestion.sources.openapi.operations import (
    Operation,
    OperationParameter,
    PathOperation,
    parameter_ids,
    path_error,
    path_operations,
)
from ingestion.sources.openapi.references import DescriptionDocuments, Node
from ingestion.sources.openapi.schema import SchemaReader
from ingestion.sources.openapi.versions import reader_for_version
from ingestion.sources.page_version import document_version
from ingestion.sources.pages import SourcePage, documents_of_page
from ingestion.sources.registry import FileResult, KnownFiles, unexpected_error
from ingestion.text.language import detect_language
from schemas.choices import Language
from schemas.document import SourceDocument
from schemas.errors import ApideskError, SourceError
from schemas.platform import OpenApiSourceConfig, PageSourceConfig, SourceLimits

MAX_PATH_CHARS = 400
"""Maximum length of a path or an operationId, in characters. Both are used in ids of documents."""

MAX_URL_BYTES = 4_000
"""Maximum length of a document's URL in bytes. Longer URLs are omitted."""

MAX_PARAMETERS = 500
"""Maximum number of entries in the `parameters` list of a path or of an operation."""

_MAX_LOCATION_CHARS = 40

_LANGUAGE_SAMPLE_CHARS = 200_000
"""Approximate number of characters from which the language is detected."""

_FromT = TypeVar("_FromT", PathOperation, Operation)
_ReadT = TypeVar("_ReadT")


class OpenApiReader:
    """The SourceReader for OpenAPI descriptions."""

    def read(
        self, source: OpenApiSourceConfig, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield the document about the whole API, then one per operation, in the order of the description.

        Documents of webhooks follow, then those of callbacks, then the document about error responses.

        The document about the whole API is omitted if the `description` texts of the API and of its tags
        are short. An operation that cannot be read yields a SourceError. `known` is ignored: an unchanged
        file must be read as well, because it may refer to a file that has changed.

        `page_url` templates may use `{operationId}`, `{tag}` (the first tag), `{method}` and `{path}`
        (without its leading slash), which are percent-encoded, and the fields of `ApiDocument`, such as
        `{serviceId}`.

        Raises SourceError if the description cannot be read, and ConfigurationError if `page_url` is
        malformed.
        """
        return _Description(source, limits).documents()


READER = OpenApiReader()


@dataclass(frozen=True)
class DescriptionSummary:
    """Summary of an OpenAPI description. Texts that the OpenAPI description does not contain are empty."""

    title: str
    description: str
    tags: tuple[str, ...]
    servers: tuple[str, ...]
    """Servers of the first operation."""
    language: Language
    operations: int
    """Number of operations in the description, without those of paths that cannot be read."""


def summarise_openapi(source: OpenApiSourceConfig, limits: SourceLimits) -> DescriptionSummary:
    """Summarise an OpenAPI description without reading all its operations.

    Raises SourceError if the OpenAPI description cannot be read.
    """
    return _Description(source, limits).summary()


class _Description:
    """Reads one OpenAPI description. Contains the state that its operations share."""

    def __init__(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        self.source = source
        self.limits = limits
        with _naming_file(source):
            self.root = DescriptionDocuments(source, limits).root()
            self.operation_reader = reader_for_version(self.root)
        self.path_operations = list(path_operations(self.root["paths"]))
        self.common_parameters = self._find_common_parameters()
        self.schema_reader = SchemaReader(limits.values)
        language = source.language or _detect_description_language(self.root)
        self.builder = ApiDocumentBuilder(self.root, language, self.schema_reader)
        self.ids = {OVERVIEW_ID, ERRORS_ID}

    def summary(self) -> DescriptionSummary:
        info = self.root["info"]
        valid = self._valid_operations()
        servers: tuple[str, ...] = ()
        if valid:
            servers = self.operation_reader.read_operation(valid[0], ()).servers
        declared = (tag.text("name") for tag in self.root["tags"].elements())
        used = (first_tag(operation.node) for operation in valid)
        return DescriptionSummary(
            title=info.text("title"),
            description=info.text("description") or info.text("summary"),
            tags=tuple(dict.fromkeys(filter(None, (*declared, *used)))),
            servers=servers,
            language=self.builder.language,
            operations=len(valid),
        )

    def documents(self) -> Iterator[FileResult]:
        yield from self._overview()
        events = event_operations(self.root, self._valid_operations())
        operations = [
            _or_error(self._read_operation, each) for each in (*self.path_operations, *events)
        ]
        error_bodies = self._find_error_bodies(operations)
        for operation in operations:
            yield _or_error(partial(self._document, error_bodies), operation)
        yield from self._error_responses(error_bodies)

    def _overview(self) -> Iterator[FileResult]:
        try:
            yield from overview_documents(self.source, self.root)
        except SourceError as error:
            yield path_error("info", str(error))

    def _find_error_bodies(self, operations: list[Operation | SourceError]) -> ErrorBodies:
        """Return the bodies of the error responses of `operations`, without webhooks and callbacks."""
        named = (
            (operation, operation_name(operation.path_operation))
            for operation in operations
            if isinstance(operation, Operation) and operation.path_operation.event is None
        )
        return ErrorBodies(named, self.limits.values, self.builder.labels)

    def _error_responses(self, error_bodies: ErrorBodies) -> Iterator[SourceDocument]:
        """Yield a document about the bodies of error responses that several operations share, if any."""
        sections = error_bodies.shared_sections()
        if not sections:
            return
        version = document_version(ERRORS_ID, "", self.source.path, self.source.name)
        yield SourceDocument(
            id=ERRORS_ID,
            source=self.source.name,
            title=self.builder.labels.error_responses,
            language=self.builder.language,
            page_url=self.root["externalDocs"].text("url"),
            metadata={"version": version} if version else {},
            sections=sections,
        )

    def _read_operation(self, path_operation: PathOperation) -> Operation:
        if not path_operation.node.is_object:
            raise SourceError("not an operation object")
        if len(path_operation.path) > MAX_PATH_CHARS:
            raise SourceError(f"path is longer than {MAX_PATH_CHARS} characters")
        parameters = self._read_parameters(path_operation)
        return self.operation_reader.read_operation(path_operation, parameters)

    def _document(self, error_bodies: ErrorBodies, operation: Operation) -> SourceDocument:
        path_operation = operation.path_operation
        try:
            api = self.builder.build(operation, self._choose_id(path_operation))
        except ValidationError as error:  # a value that the earlier checks do not reject
            raise SourceError(_first_problem(error)) from None
        values = _template_values(path_operation)
        if path_operation.event is not None:
            document = event_document(self.source, api, path_operation.event, values)
        else:
            document = api_document(self.source, api, values)
            sections = (*document.sections, *error_bodies.own_sections(operation))
            document = document.model_copy(update={"sections": sections})
        document = self._with_operation_id(document, path_operation)
        self.ids.add(document.id)
        url = _page_url(document.page_url, path_operation)
        return document.model_copy(update={"page_url": url})

    def _with_operation_id(
        self, document: SourceDocument, path_operation: PathOperation
    ) -> SourceDocument:
        """Return `document` with the operationId in the line below the method.

        Developers search for the operationId, because it is the name of the method in generated SDKs. It is
        not added if it is already the title.
        """
        declared = " ".join(path_operation.node.text("operationId").replace("`", "").split())
        if not declared or declared == document.title:
            return document
        method = f"- {self.builder.labels.method}: `{path_operation.method}`"
        lines = f"{method}\n- operationId: `{declared[:MAX_PATH_CHARS]}`"
        sections = (
            section.model_copy(update={"body": section.body.replace(method, lines, 1)})
            if section.kind in ("request_url", "prose")
            else section
            for section in document.sections
        )
        return document.model_copy(update={"sections": tuple(sections)})

    def _choose_id(self, path_operation: PathOperation) -> str:
        """Return the operationId as the id of the document.

        If the operationId is missing, too long or taken, the id is the method and path. If this id is taken
        too, a number is added.
        """
        declared = path_operation.node.text("operationId")
        is_usable = declared and len(declared) <= MAX_PATH_CHARS
        api_id = declared if is_usable else str(path_operation)
        if api_id in self.ids:
            api_id = str(path_operation)
        number = 1
        while api_id in self.ids:
            number += 1
            api_id = f"{path_operation} ({number})"
        return api_id

    def _read_parameters(self, path_operation: PathOperation) -> tuple[OperationParameter, ...]:
        """Return the parameters of the path item and of the operation.

        A parameter of the operation replaces the path item's parameter with the same name and location.

        A parameter is common if the path item declares it, or if most operations of the description refer
        to it. Parameters in `path` or `body` are never common.
        """
        parameters: dict[tuple[str, str], OperationParameter] = {}
        for holder in (path_operation.item, path_operation.node):
            for number, reference in enumerate(holder["parameters"].elements()):
                if number >= MAX_PARAMETERS:
                    raise SourceError(f"has more than {MAX_PARAMETERS} parameters")
                node = reference.resolve()
                name, location = node.text("name"), node.text("in")
                if not name or not location:
                    continue
                is_shared = (
                    holder is path_operation.item or id(node.value) in self.common_parameters
                )
                is_common = is_shared and location not in ("path", "body")
                parameters[name, location] = self.operation_reader.read_parameter(
                    name, location[:_MAX_LOCATION_CHARS], node, is_common
                )
        return tuple(parameters.values())

    def _valid_operations(self) -> list[PathOperation]:
        operations = self.path_operations
        return [operation for operation in operations if isinstance(operation, PathOperation)]

    def _find_common_parameters(self) -> set[int]:
        """Return the Python object ids of the reusable parameters to which most operations refer."""
        reusable = {id(node.value) for _, node in self.operation_reader.shared_parameters.items()}
        valid = self._valid_operations()
        uses: Counter[int] = Counter()
        for path_operation in valid:
            uses.update(set(parameter_ids(path_operation.node)) & reusable)
        return {
            parameter_id
            for parameter_id, count in uses.items()
            if count > 1 and count * 2 > len(valid)
        }


def _or_error(
    read: Callable[[_FromT], _ReadT], operation: _FromT | SourceError
) -> _ReadT | SourceError:
    """Return the result of `read` for an operation, or the error that explains why there is none.

    A SourceError in place of the operation is returned unchanged. A SourceError that `read` raises becomes
    an error about the operation. So does an exception that is not an ApideskError, because it indicates a
    bug.
    """
    if isinstance(operation, SourceError):
        return operation
    try:
        return read(operation)
    except SourceError as error:
        return path_error(str(operation), str(error))
    except ApideskError:
        raise
    except Exception as error:
        return unexpected_error(str(operation), error)


@contextmanager
def _naming_file(source: OpenApiSourceConfig) -> Iterator[None]:
    """Add the name of the description to a SourceError within the block."""
    name = source.path.name if source.path is not None else "the description"
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None


def _template_values(path_operation: PathOperation) -> dict[str, object]:
    values = {
        "operationId": path_operation.node.text("operationId"),
        "tag": first_tag(path_operation.node),
        "method": path_operation.method,
        "path": path_operation.path.lstrip("/"),
    }
    return {name: quote(value) for name, value in values.items()}


def _page_url(from_template: str, path_operation: PathOperation) -> str:
    """Return the URL from the template or else from `externalDocs`; empty if it is too long."""
    external = path_operation.node["externalDocs"].text("url")
    url = from_template or (external if external.startswith(("http://", "https://")) else "")
    return url if len(url.encode()) <= MAX_URL_BYTES else ""


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def _detect_description_language(root: Node) -> Language:
    """Detect the language of the titles, summaries and descriptions in `root`."""
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
            stack.extend(
                reversed([inner for inner in value.values() if isinstance(inner, dict | list)])
            )
    return detect_language(" ".join(texts))


# --- the document about the whole API -------------------------------------------------------------
# Many platforms explain authentication, errors and limits only in the texts about the API and its tags.

OVERVIEW_ID = "overview"
"""Id of the document about the whole API. An operation with this operationId gets another id."""

ERRORS_ID = "error-responses"
"""Id of the document about error responses. An operation with this operationId gets another id."""

MIN_DESCRIPTION_CHARS = 80
"""Minimum length of a `description` in the overview, in characters. Shorter ones usually repeat a name."""


def overview_documents(source: OpenApiSourceConfig, root: Node) -> list[SourceDocument]:
    """Return a list of one document, which contains the descriptions of the API and of its tags.

    Descriptions that are shorter than `MIN_DESCRIPTION_CHARS` are left out. If no description remains, the
    list is empty. The heading of a tag's description is the tag's `x-displayName` or, if it has none, its
    name. Raises SourceError if a description contains HTML that exceeds a limit, or if the description of
    the API begins with malformed front matter.
    """
    text = "\n\n".join(_overview_texts(root))
    if not text:
        return []
    title, docs_url = root["info"].text("title"), root["externalDocs"].text("url")
    content = markdown_content(text)
    page = SourcePage(OVERVIEW_ID, content._replace(values={"title": title, "url": docs_url}))
    config = PageSourceConfig(name=source.name, page_url=("{url}",), api_pages=False)
    return documents_of_page(config, page) or []


def _overview_texts(root: Node) -> Iterator[str]:
    if len(text := root["info"].text("description")) >= MIN_DESCRIPTION_CHARS:
        yield text
    for tag in root["tags"].elements():
        if len(text := tag.text("description")) >= MIN_DESCRIPTION_CHARS:
            yield f"# {tag.text('x-displayName') or tag.text('name')}\n\n{text}"
