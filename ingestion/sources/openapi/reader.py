"""OpenAPI 3.0, 3.1 and Swagger 2.0 descriptions: one operation, one document."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import ValidationError

from ingestion.sources.api_docs import api_document
from ingestion.sources.folder import FileResult
from ingestion.sources.openapi.document import METHODS, DocumentMaker, first_tag
from ingestion.sources.openapi.operations import Operation, OperationField, OperationPlace
from ingestion.sources.openapi.references import DescriptionDocuments, Node, shown
from ingestion.sources.openapi.schema import SchemaReader
from ingestion.sources.openapi.versions import field_v2, field_v3, read_v2, read_v3
from ingestion.text.language import detect_language
from schemas.choices import Language
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import OpenApiSourceConfig, SourceLimits

LONGEST_PATH = 400
"""Characters of a path or an operationId: they are ids, and stand in the collection's fields."""

LONGEST_URL = 4_000
"""Characters of a document's link; a longer one is left out."""

MOST_PARAMETERS = 500
"""Parameters of one operation outside of its body."""

_SAMPLE = 200_000
"""Characters that the language is found out from."""


@dataclass(frozen=True)
class _Version:
    """How a version of OpenAPI is read."""

    parameters: Callable[[Node], Node]
    """Where parameters lie that operations refer to."""
    field: Callable[[str, str, Node, bool], OperationField]
    read: Callable[[Node, OperationPlace, tuple[OperationField, ...]], Operation]


_V2 = _Version(lambda root: root["parameters"], field_v2, read_v2)
_V3 = _Version(lambda root: root["components"]["parameters"], field_v3, read_v3)


def read_openapi(source: OpenApiSourceConfig, limits: SourceLimits) -> Iterator[FileResult]:
    """A document an operation below `paths`, in the description's order, and a SourceError for each
    operation that was refused.

    `page_url` templates may name, beyond the document's own fields, `{operationId}`, `{tag}` (the
    first), `{method}` and `{path}` (without its first slash), as they stand in a url.

    Raises SourceError for a description that cannot be read as a whole, ConfigurationError for a
    `page_url` that is no template.
    """
    description = _Description(source, limits)
    return description.documents()


@dataclass(frozen=True)
class DescriptionSummary:
    """What a description says of itself; empty where it says nothing."""

    title: str
    description: str
    tags: tuple[str, ...]
    servers: tuple[str, ...]
    """Of its first operation."""
    language: Language
    operations: int


def summarise(source: OpenApiSourceConfig, limits: SourceLimits) -> DescriptionSummary:
    """The description as a whole, its operations only counted. Raises SourceError as `read_openapi`."""
    return _Description(source, limits).summary()


class _Description:
    """A description, and what counts for all of its operations."""

    def __init__(self, source: OpenApiSourceConfig, limits: SourceLimits) -> None:
        self.source = source
        self.root = _root(source, limits)
        self.version = _version(self.root)
        self.places = list(_places(self.root))
        self.common = self._common()
        self.reader = SchemaReader(limits.values)
        language = source.language or _language(self.root)
        self.maker = DocumentMaker(self.root, language, self.reader)
        self.ids: set[str] = set()

    def summary(self) -> DescriptionSummary:
        """What it says of itself."""
        info = self.root["info"]
        places = [place for place in self.places if isinstance(place, OperationPlace)]
        operations = [self.version.read(self.root, place, ()) for place in places[:1]]
        tags = (tag.text("name") for tag in self.root["tags"].elements())
        return DescriptionSummary(
            title=info.text("title"),
            description=info.text("description") or info.text("summary"),
            tags=tuple(dict.fromkeys(filter(None, (*tags, *(first_tag(p.node) for p in places))))),
            servers=operations[0].servers if operations else (),
            language=self.maker.language,
            operations=len(places),
        )

    def documents(self) -> Iterator[FileResult]:
        """The operations one by one; one that is refused does not end the run."""
        for place in self.places:
            if isinstance(place, SourceError):
                yield place
                continue
            try:
                yield self._document(place)
            except SourceError as error:
                yield SourceError(f"{shown(str(place))[1:-1]}: {error}")

    def _document(self, place: OperationPlace) -> SourceDocument:
        if not place.node.is_table:
            raise SourceError("is no operation")
        if len(place.path) > LONGEST_PATH:
            raise SourceError(f"its path is longer than {LONGEST_PATH} characters")
        operation = self.version.read(self.root, place, self._fields(place))
        try:
            api = self.maker.make(operation, self._id(place))
        except ValidationError as error:  # whatever nobody thought of
            raise SourceError(_first(error)) from None
        document = api_document(self.source, api, _values(place))
        self.ids.add(document.id)
        return document.model_copy(update={"page_url": _link(document.page_url, place)})

    def _id(self, place: OperationPlace) -> str:
        """The operationId of the first operation that has it; else method and path."""
        own = place.node.text("operationId")
        wanted = own if own and len(own) <= LONGEST_PATH else str(place)
        if wanted in self.ids:
            wanted = str(place)
        number = 1
        while wanted in self.ids:
            number += 1
            wanted = f"{place} ({number})"
        return wanted

    def _fields(self, place: OperationPlace) -> tuple[OperationField, ...]:
        """The parameters of an operation; of two equal ones the operation's own counts.

        Public is what the path declares for all its operations, and what most operations of the
        description refer to; but a path's own placeholder never is.
        """
        found: dict[tuple[str, str], OperationField] = {}
        for holder in (place.item, place.node):
            for number, each in enumerate(holder["parameters"].elements()):
                if number >= MOST_PARAMETERS:
                    raise SourceError(f"has more than {MOST_PARAMETERS} parameters")
                node = each.followed()
                name, location = node.text("name"), node.text("in")
                if not name or not location:
                    continue
                is_public = holder is place.item or id(node.value) in self.common
                is_public = is_public and location not in ("path", "body")
                found[name, location] = self.version.field(name, location[:40], node, is_public)
        return tuple(found.values())

    def _common(self) -> set[int]:
        """The reusable parameters that most operations refer to."""
        reusable = {id(node.value) for _, node in self.version.parameters(self.root).fields()}
        places = [place for place in self.places if isinstance(place, OperationPlace)]
        used: Counter[int] = Counter()
        for place in places:
            used.update(set(_referred(place.node)) & reusable)
        return {each for each, count in used.items() if count > 1 and count * 2 > len(places)}


def _link(made: str, place: OperationPlace) -> str:
    """The link that a template made; else the operation's own documentation."""
    further = place.node["externalDocs"].text("url")
    link = made or (further if further.startswith(("http://", "https://")) else "")
    return link if len(link.encode()) <= LONGEST_URL else ""


def _first(error: ValidationError) -> str:
    problem = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def _root(source: OpenApiSourceConfig, limits: SourceLimits) -> Node:
    name = source.path.name if source.path is not None else "the description"
    try:
        return DescriptionDocuments(source, limits).root()
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None


def _version(root: Node) -> _Version:
    if root.text("swagger").startswith("2"):
        return _V2
    if root.text("openapi").startswith("3"):
        return _V3
    raise SourceError("is no description of OpenAPI 3.0, 3.1 or Swagger 2.0")


def _places(root: Node) -> Iterator[OperationPlace | SourceError]:
    """Every operation; for a path that leads nowhere, why."""
    for path, item in root["paths"].fields():
        if path.startswith("x-") or item.value is None:
            continue
        if not item.is_table:
            yield SourceError(f"{shown(path)[1:-1]}: holds no operations")
            continue
        try:
            target = item.followed()
        except SourceError as error:
            yield SourceError(f"{shown(path)[1:-1]}: {error}")
            continue
        yield from _operations(path, item, target)


def _operations(path: str, item: Node, target: Node) -> Iterator[OperationPlace]:
    """What stands beside a path's `$ref` counts more than what it leads to."""
    seen: set[str] = set()
    for holder in (item, target):
        for key, node in holder.fields():
            method = key.upper()
            if method in METHODS and method not in seen:
                seen.add(method)
                yield OperationPlace(method, path, holder, node)


def _referred(operation: Node) -> Iterator[int]:
    for each in operation["parameters"].elements():
        try:
            yield id(each.followed().value)
        except SourceError:
            continue  # said when the operation is read


def _values(place: OperationPlace) -> dict[str, object]:
    named = {
        "operationId": place.node.text("operationId"),
        "tag": first_tag(place.node),
        "method": place.method,
        "path": place.path.lstrip("/"),
    }
    return {name: quote(value) for name, value in named.items()}


def _language(root: Node) -> Language:
    """The language of what the description says to people."""
    texts: list[str] = []
    room = _SAMPLE
    stack = [root.value]
    while stack and room > 0:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, dict):
            said = [value.get(key) for key in ("title", "summary", "description")]
            words = [text for text in said if isinstance(text, str)]
            texts += words
            room -= sum(map(len, words)) + 1
            stack.extend(reversed([v for v in value.values() if isinstance(v, dict | list)]))
    return detect_language(" ".join(texts))
