"""An operation as an ApiDocument."""

from collections.abc import Iterable, Iterator
from typing import get_args

from prompts.user_text import SectionLabels, user_text
from ingestion.sources.openapi.access import credential_parameters, permission_packages
from ingestion.sources.openapi.descriptions import MAX_DESCRIPTION_CHARS
from ingestion.sources.openapi.errors import error_codes, is_error_example
from ingestion.sources.openapi.operations import (
    MediaContent,
    Operation,
    OperationParameter,
    OperationResponse,
    base_path,
    make_example,
)
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.rows import RowBuilder
from ingestion.sources.openapi.schema import SchemaReader
from schemas.api_document import AllowedValue, ApiDocument, Example, Parameter
from schemas.choices import Language

MAX_NAME_CHARS = 300
"""Characters of a name or a tag."""

MAX_SHOWN_EXAMPLES = 3
"""Examples that are shown of a request, and of what answers it."""

MAX_SUCCESS_RESPONSES = 4
"""Statuses of success that are told apart."""


class ApiDocumentBuilder:
    """Makes the documents of one description, in one language."""

    def __init__(self, root: Node, language: Language, reader: SchemaReader) -> None:
        self.info = root["info"]
        self.tags = {tag.text("name"): tag for tag in root["tags"].elements()}
        self.language: Language = language
        self.labels: SectionLabels = user_text(language).api_document
        self.reader = reader

    def make(self, operation: Operation, api_id: str) -> ApiDocument:
        """The document of `operation` under the id `api_id`. Raises SourceError."""
        node, item = operation.place.node, operation.place.item
        name = node.text("summary") or item.text("summary") or node.text("operationId")
        headers, public, request = self._sent(operation)
        answers = [r for r in operation.responses if r.is_success][:MAX_SUCCESS_RESPONSES]
        answers = answers or [r for r in operation.responses if r.status == "default"]
        tag = first_tag(node)
        return ApiDocument(
            service_id=(tag or self.info.text("title") or "api")[:MAX_NAME_CHARS],
            service_name=self._service_name(tag),
            api_id=api_id,
            name=" ".join((name or str(operation.place)).split())[:MAX_NAME_CHARS],
            method=operation.place.method,
            url=base_path(operation.servers) + operation.place.path,
            language=self.language,
            deprecated=node.flag("deprecated"),
            description=self._description(node, item),
            request_headers=headers,
            public_parameters=public,
            request_parameters=request,
            response_parameters=self._answered(answers),
            error_codes=error_codes(operation, self.reader),
            permission_packages=permission_packages(operation, self.labels),
            request_examples=self._examples(operation.body),
            response_examples=self._examples([m for r in answers for m in r.media]),
            request_description=operation.body_description[:MAX_DESCRIPTION_CHARS],
            response_description="\n\n".join(_response_line(r) for r in answers if r.description),
            servers=operation.servers,
        )

    def _service_name(self, tag: str) -> str:
        shown = self.tags[tag].text("x-displayName") if tag in self.tags else ""
        return (shown or tag or self.info.text("title"))[:MAX_NAME_CHARS]

    def _description(self, node: Node, item: Node) -> str:
        text = node.text("description") or item.text("description") or node.text("summary")
        further = node["externalDocs"].text("url")
        link = f"{self.labels.see}: {further}" if further and further not in text else ""
        return "\n\n".join(filter(None, (text[:MAX_DESCRIPTION_CHARS], link)))

    def _sent(self, operation: Operation) -> tuple[tuple[Parameter, ...], ...]:
        """Headers; what other operations have too; the rest, with the body."""
        proof = credential_parameters(operation)
        rows = RowBuilder(self.reader, self.labels, "request")
        headers = [*(_without_location(p) for p in proof if p.location == "header")]
        headers += _content_type_header(operation)
        headers += [_without_location(p) for p in rows.fields(_select_parameters(operation.fields, is_header=True))]
        others = list(_select_parameters(operation.fields, is_header=False))
        public = rows.fields(field for field in others if field.is_public)
        own = rows.fields(field for field in others if not field.is_public)
        beside = tuple(p for p in proof if p.location != "header")
        return tuple(headers), public, (*beside, *own, *self._body(rows, operation.body))

    def _body(self, rows: RowBuilder, media: tuple[MediaContent, ...]) -> tuple[Parameter, ...]:
        distinct = _distinct_schemas(media)
        found: list[Parameter] = []
        for each in distinct:
            location = "formData" if each.is_form else "body"
            if len(distinct) > 1:
                location = f"{location} ({each.type})"
            found += rows.body(each, "body", location)
        return tuple(found)

    def _answered(self, answers: list[OperationResponse]) -> tuple[Parameter, ...]:
        """What comes back; where it can be of several kinds, each row says of which."""
        rows = RowBuilder(self.reader, self.labels, "response")
        bodies = [(answer, media) for answer in answers for media in _distinct_schemas(answer.media)]
        statuses = {answer.status for answer, _ in bodies}
        found: list[Parameter] = []
        for answer, media in bodies:
            several = media.type if len(bodies) > 1 else ""
            status = answer.status if len(statuses) > 1 else ""
            found += rows.body(media, "response", f"{status} {several}".strip())
        for answer in answers:
            fields = [
                OperationParameter(name, "header", header.followed(), _header_schema(header.followed()))
                for name, header in answer.headers.fields()
                if name
            ]
            found += rows.fields(fields)
        return tuple(found)

    def _examples(self, media: Iterable[MediaContent]) -> tuple[Example, ...]:
        """The examples of the bodies; where there are none, those of their schemas."""
        named = [each for body in media for each in body.examples]
        good = [each for each in named if not is_error_example(each)] or named
        shown = tuple(each.example for each in good[:MAX_SHOWN_EXAMPLES])
        return shown or tuple(self._schema_examples(media))

    def _schema_examples(self, media: Iterable[MediaContent]) -> Iterator[Example]:
        for body in list(media)[:1]:
            schema = self.reader.read(body.schema)
            several = schema.say("examples")
            values = [schema.say("example"), *(several.elements() if several else ())]
            for node in [node for node in values if node is not None][:1]:
                found = make_example(node.value, "")
                if found is not None:
                    yield found


METHODS = tuple(get_args(ApiDocument.model_fields["method"].annotation))


def first_tag(node: Node) -> str:
    """The first tag of an operation."""
    tags = (tag.value for tag in node["tags"].elements())
    return next((tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()), "")


def _response_line(response: OperationResponse) -> str:
    return f"`{response.status}` {response.description[:MAX_DESCRIPTION_CHARS]}"


def _select_parameters(fields: Iterable[OperationParameter], is_header: bool) -> Iterator[OperationParameter]:
    return (field for field in fields if (field.location == "header") == is_header)


def _without_location(parameter: Parameter) -> Parameter:
    """A header among headers, where nobody has to be told that it is one."""
    return parameter.model_copy(update={"location": ""})


def _header_schema(header: Node) -> Node:
    return header["schema"] if header["schema"].is_table else header


def _content_type_header(operation: Operation) -> list[Parameter]:
    declared = {field.name.lower() for field in operation.fields if field.location == "header"}
    types = operation.body_types
    if not types or "content-type" in declared:
        return []
    several = tuple(AllowedValue(value=each) for each in types) if len(types) > 1 else ()
    return [Parameter(name="Content-Type", required=True, example=types[0], values=several)]


def _distinct_schemas(media: Iterable[MediaContent]) -> list[MediaContent]:
    """One body of each schema: most media types are another way to write the same."""
    found: dict[object, MediaContent] = {}
    for each in media:
        if each.schema.is_table:
            key = each.schema.reference or repr(each.schema.value)
            found.setdefault(key, each)
    return list(found.values())
