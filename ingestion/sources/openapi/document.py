"""Builds an ApiDocument from an operation.

The document's permissions and credential parameters come from the operation's security requirements.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from ingestion.sources.openapi.errors import errors_of_operation, is_error_example
from ingestion.sources.openapi.operations import (
    MediaContent,
    Operation,
    OperationParameter,
    OperationResponse,
    PathOperation,
    base_path,
    make_example,
)
from ingestion.sources.openapi.references import Node
from ingestion.sources.openapi.rows import RowBuilder
from ingestion.sources.openapi.schema import MAX_DESCRIPTION_CHARS, SchemaReader
from ingestion.text.sentences import first_sentence
from ingestion.text.typography import join_texts, label_with, with_note
from prompts.user_text import SectionLabels, user_text
from schemas.choices import Language
from schemas.document import AllowedValue, ApiDocument, Example, Parameter, PermissionPackage

MAX_NAME_CHARS = 300
"""Maximum length of a name or tag, in characters."""

_CAMEL_CASE = re.compile(r"[A-Za-z][a-z\d]*(?:[A-Z]+[a-z\d]*)+")
_WORD = re.compile(
    r"OAuth\d*|IPv\d|GraphQL|iOS|\dFA(?![a-z])"
    r"|[A-Z]{2,}s?(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z\d]+?(?=\dFA|iOS|[A-Z]|$)|[A-Z]?[a-z\d]+|[A-Z]+"
)
"""A word of an identifier. Some names, such as OAuth, are words although they contain capitals."""

MAX_SHOWN_EXAMPLES = 3
"""Maximum number of request examples in a document, and of response examples."""

MAX_SUCCESS_RESPONSES = 4
"""Maximum number of success responses in a document. Further success responses are omitted."""


class ApiDocumentBuilder:
    """Builds the documents of one OpenAPI description, in one language."""

    def __init__(self, root: Node, language: Language, reader: SchemaReader) -> None:
        self.info = root["info"]
        self.tags = {tag.text("name"): tag for tag in root["tags"].elements()}
        self.language: Language = language
        self.labels: SectionLabels = user_text(language).api_document
        self.reader = reader

    def build(self, operation: Operation, api_id: str) -> ApiDocument:
        """Build the document of `operation`, with the id `api_id`. Raises SourceError.

        A webhook or callback gets no servers, and only its own security requirements apply.
        """
        if operation.path_operation.event is not None:
            own_security = operation.path_operation.node["security"]
            operation = replace(operation, servers=(), security=own_security)
        node = operation.path_operation.node
        headers, common, request = self._request_tables(operation)
        responses = operation.success_responses[:MAX_SUCCESS_RESPONSES]
        bodies = [media for response in responses for media in response.media]
        tag = first_tag(node)
        return ApiDocument(
            service_id=(tag or self.info.text("title") or "api")[:MAX_NAME_CHARS],
            service_name=self._service_name(tag),
            api_id=api_id,
            name=operation_name(operation.path_operation),
            method=operation.path_operation.method,
            url=base_path(operation.servers) + operation.path_operation.path,
            language=self.language,
            deprecated=node.is_true("deprecated"),
            description=self._description(operation.path_operation),
            request_headers=headers,
            public_parameters=common,
            request_parameters=request,
            response_parameters=self._response_parameters(responses),
            error_codes=errors_of_operation(operation, self.reader),
            permission_packages=permission_packages(operation, self.labels),
            authentication=authentication(operation, self.labels),
            request_examples=self._examples(operation.body),
            response_examples=self._examples(bodies),
            request_description=operation.body_description[:MAX_DESCRIPTION_CHARS],
            response_description="\n\n".join(filter(None, map(self._describe_status, responses))),
            servers=operation.servers,
        )

    def _service_name(self, tag: str) -> str:
        display_name = self.tags[tag].text("x-displayName") if tag in self.tags else ""
        return (display_name or tag or self.info.text("title"))[:MAX_NAME_CHARS]

    def _description(self, path_operation: PathOperation) -> str:
        """Return the description and a link to `externalDocs`.

        A description that only repeats the name, for example with a full stop, is replaced by the exact
        name, so that answers can recognise the repetition and do not quote it. For deprecated operations,
        webhooks and callbacks, such a description is left out.
        """
        node, item = path_operation.node, path_operation.item
        text = node.text("description") or item.text("description") or node.text("summary")
        name = operation_name(path_operation)
        if _is_same_text(text, name):
            text = "" if node.is_true("deprecated") or path_operation.event is not None else name
        docs_url = node["externalDocs"].text("url")
        link = label_with(self.labels.see, docs_url) if docs_url and docs_url not in text else ""
        return "\n\n".join(filter(None, (text[:MAX_DESCRIPTION_CHARS], link)))

    def _request_tables(self, operation: Operation) -> tuple[tuple[Parameter, ...], ...]:
        """Return three tables: headers, common parameters, and all other parameters including the body."""
        credentials = credential_parameters(operation)
        # The platform sends the request of a webhook or callback. Its fields are therefore described like
        # those of a response.
        is_event = operation.path_operation.event is not None
        rows = RowBuilder(self.reader, self.labels, "response" if is_event else "request")
        header_credentials = [row for row in credentials if row.location == "header"]
        other_credentials = [row for row in credentials if row.location != "header"]
        declared = rows.parameter_rows(
            each for each in operation.parameters if each.location == "header"
        )
        headers = [
            *map(_without_location, header_credentials),
            *_content_type_header(operation.body_types, declared),
            *map(_without_location, declared),
        ]
        others = [each for each in operation.parameters if each.location != "header"]
        common = rows.parameter_rows(parameter for parameter in others if parameter.is_common)
        specific = rows.parameter_rows(parameter for parameter in others if not parameter.is_common)
        return (
            tuple(headers),
            common,
            (*other_credentials, *specific, *self._body(rows, operation.body)),
        )

    def _body(self, rows: RowBuilder, media: tuple[MediaContent, ...]) -> tuple[Parameter, ...]:
        distinct = _distinct_schemas(media)
        parameters: list[Parameter] = []
        for content in distinct:
            location = "formData" if content.is_form else "body"
            if len(distinct) > 1:
                location = f"{location} ({content.type})"
            parameters += rows.body_rows(content, "body", location)
        return tuple(parameters)

    def _response_parameters(self, responses: Sequence[OperationResponse]) -> tuple[Parameter, ...]:
        """Return the rows of the bodies of `responses`, followed by the rows of their headers.

        If there are several bodies, the location of a row names its body, such as `201 application/json`.
        """
        rows = RowBuilder(self.reader, self.labels, "response")
        bodies = [
            (response, media)
            for response in responses
            for media in _distinct_schemas(response.media)
        ]
        statuses = {response.status for response, _ in bodies}
        parameters: list[Parameter] = []
        for response, media in bodies:
            media_type = media.type if len(bodies) > 1 else ""
            status = response.status if len(statuses) > 1 else ""
            parameters += rows.body_rows(media, "response", f"{status} {media_type}".strip())
        for response in responses:
            named = ((name, header.resolve()) for name, header in response.headers.items() if name)
            parameters += rows.parameter_rows(
                OperationParameter(
                    name,
                    "header",
                    header,
                    header["schema"] if header["schema"].is_object else header,
                )
                for name, header in named
            )
        return tuple(parameters)

    def _describe_status(self, response: OperationResponse) -> str:
        """Return the status of a success response with its description; empty if it has no description.

        A 2xx status has the label `success_status`, because a status without a label shares no words with
        questions. The status `default` has no label.
        """
        if not response.description:
            return ""
        text = f"`{response.status}` {response.description[:MAX_DESCRIPTION_CHARS]}"
        return label_with(self.labels.success_status, text) if response.is_success else text

    def _examples(self, media: Sequence[MediaContent]) -> tuple[Example, ...]:
        """Return the examples of the bodies or, if there are none, the example in the first body's schema.

        Examples of errors are omitted if there are other examples. At most `MAX_SHOWN_EXAMPLES` are
        returned.
        """
        named = [example for body in media for example in body.examples]
        successes = [example for example in named if not is_error_example(example)] or named
        examples = tuple(success.example for success in successes[:MAX_SHOWN_EXAMPLES])
        return examples or tuple(filter(None, map(self._schema_example, media[:1])))

    def _schema_example(self, body: MediaContent) -> Example | None:
        schema = self.reader.read(body.schema)
        several = schema.get("examples")
        nodes = [schema.get("example"), *(several.elements() if several else ())]
        value = next((node.value for node in nodes if node is not None), None)
        return make_example(value, "")


def first_tag(node: Node) -> str:
    """Return the first tag of an operation; empty if it has none."""
    tags = (tag.value for tag in node["tags"].elements())
    return next((tag.strip() for tag in tags if isinstance(tag, str) and tag.strip()), "")


def operation_name(path_operation: PathOperation) -> str:
    """Return the name of an operation: its summary, the summary of its path item, or its operationId.

    If the name is missing or only repeats the end of the path, such as `create` for `/group/create`, the
    first sentence of the description replaces it, if there is one. An operationId in camel case is written
    as words. If the operation has none of these texts, its name is the method and path.

    The name of a webhook or callback is its summary, or its name in the OpenAPI description.
    """
    node, item, event = path_operation.node, path_operation.item, path_operation.event
    key = node.text("operationId") if event is None else event.name
    name = node.text("summary") or item.text("summary") or key
    if event is None and path_operation.path.strip("/").endswith(name.strip("/")):
        first_line = node.text("description").strip().partition("\n")[0]
        name = first_sentence(first_line).rstrip(".!?。！？") or name
    if event is None and name == key:
        name = _words_of_identifier(name)
    return " ".join((name or str(path_operation)).split())[:MAX_NAME_CHARS]


def _words_of_identifier(identifier: str) -> str:
    """Return an identifier in camel case as words: `listUserIDs` becomes "List user IDs"."""
    words = _WORD.findall(identifier) if _CAMEL_CASE.fullmatch(identifier) else []
    if len(words) < 2:
        return identifier
    first, *others = (word if word[1:].lower() != word[1:] else word.lower() for word in words)
    return " ".join([first[:1].upper() + first[1:], *others])


def _is_same_text(text: str, other: str) -> bool:
    """Return whether two texts are equal, apart from spaces and a final full stop."""
    return " ".join(text.split()).rstrip(".。") == other.rstrip(".。")


def _without_location(parameter: Parameter) -> Parameter:
    """Return `parameter` without its location, which is redundant in the table of headers."""
    return parameter.model_copy(update={"location": ""})


def _content_type_header(types: tuple[str, ...], declared: Iterable[Parameter]) -> list[Parameter]:
    if not types or "content-type" in {header.name.lower() for header in declared}:
        return []
    values = tuple(AllowedValue(value=media_type) for media_type in types) if len(types) > 1 else ()
    return [Parameter(name="Content-Type", required=True, example=types[0], values=values)]


def _distinct_schemas(media: Iterable[MediaContent]) -> list[MediaContent]:
    """Return the first of `media` for each distinct schema, because media types often share a schema.

    Media without a schema are omitted.
    """
    by_schema: dict[object, MediaContent] = {}
    for content in media:
        if content.schema.is_object:
            key = content.schema.reference or repr(content.schema.value)
            by_schema.setdefault(key, content)
    return list(by_schema.values())


# --- security requirements ------------------------------------------------------------------------

MAX_REQUIREMENTS = 50
"""Maximum number of alternative requirements of an operation, and of security schemes in one of them."""

_URL_KEYS = ("authorizationUrl", "tokenUrl", "openIdConnectUrl")
_TOKEN_PARAMETERS = {"authorization", "token", "accesstoken", "bearertoken"}


@dataclass(frozen=True)
class _SchemeRequirement:
    """A security scheme that a request must use, with the required scopes."""

    name: str
    scheme: Node
    scopes: tuple[str, ...]


def _alternatives(operation: Operation) -> Iterator[list[_SchemeRequirement]]:
    """Yield the alternative requirements, of which a request must satisfy one."""
    for requirement in islice(operation.security.elements(), MAX_REQUIREMENTS):
        fields = islice(requirement.items(), MAX_REQUIREMENTS)
        yield [_scheme_requirement(operation, name, scopes) for name, scopes in fields if name]


def _scheme_requirement(operation: Operation, name: str, scopes: Node) -> _SchemeRequirement:
    values = (scope.value for scope in scopes.elements())
    names = tuple(value for value in values if isinstance(value, str) and value)
    return _SchemeRequirement(name, operation.schemes[name].resolve(), names)


def permission_packages(
    operation: Operation, labels: SectionLabels
) -> tuple[PermissionPackage, ...]:
    """Return a permission package for each required scope.

    Each package has the description of its scope. If there are alternative requirements, every description
    lists the alternatives. If a call without credentials is allowed, the last description says so. Raises
    SourceError.
    """
    alternatives = list(_alternatives(operation))
    distinct = dict.fromkeys(filter(None, map(_alternative_text, alternatives)))
    note = label_with(labels.any_of, " / ".join(distinct)) if len(distinct) > 1 else ""
    packages: dict[str, str] = {}
    for requirement in chain.from_iterable(alternatives):
        for scope in requirement.scopes:
            text = _scope_text(requirement.scheme, scope)
            about = join_texts(["" if text == scope else text, note], ". ")
            packages.setdefault(scope[:200], about)
    if packages and [] in alternatives:
        last = list(packages)[-1]
        packages[last] = with_note(packages[last], labels.without_credentials)
    return tuple(
        PermissionPackage(name=name, description=description)
        for name, description in packages.items()
    )


def authentication(operation: Operation, labels: SectionLabels) -> str:
    """Return the required security schemes, such as `login (HTTP basic)`; empty if none is required.

    Alternatives are separated by slashes. If a call without credentials is allowed, the text says so.
    """
    alternatives = list(_alternatives(operation))
    names = [" + ".join(map(_scheme_with_label, schemes)) for schemes in alternatives if schemes]
    if not names:
        return ""
    text = " / ".join(names)
    text = label_with(labels.any_of, text) if len(names) > 1 else text
    return with_note(text, labels.without_credentials) if [] in alternatives else text


def _scheme_with_label(requirement: _SchemeRequirement) -> str:
    """Return the name of a scheme with its label.

    The description of the scheme is added if no credential parameter contains it.
    """
    about = [_scheme_label(requirement.scheme)]
    if _credential_parameter(requirement, required=True) is None:
        about.append(" ".join(requirement.scheme.text("description").split()))
    label = ". ".join(filter(None, about))
    return f"{requirement.name} ({label})" if label else requirement.name


def _alternative_text(alternative: list[_SchemeRequirement]) -> str:
    """Return the scopes of an alternative, such as `read + write`.

    A scheme without scopes is represented by the header or parameter of its API key, such as `X-Key`, or
    else by its kind or name.
    """
    return " + ".join(
        name
        for requirement in alternative
        for name in requirement.scopes or (_scheme_without_scopes(requirement),)
    )


def _scheme_without_scopes(requirement: _SchemeRequirement) -> str:
    """Return the header or parameter of an API key, such as `X-Key`, or the kind or name of the scheme."""
    scheme = requirement.scheme
    key = scheme.text("name") if scheme.text("type") == "apiKey" else ""
    return f"`{key}`" if key else _scheme_kind(scheme) or requirement.name


def _scope_text(scheme: Node, scope: str) -> str:
    holders = [scheme, *(flow for _, flow in scheme["flows"].items())]
    return next(filter(None, (holder["scopes"].text(scope) for holder in holders)), "")


def _scheme_label(scheme: Node) -> str:
    """Return the kind of a scheme, with its URLs if it has any: `HTTP bearer` or `oauth2, https://…`."""
    flows = [scheme, *(flow for _, flow in scheme["flows"].items())]
    urls = dict.fromkeys(filter(None, (flow.text(key) for flow in flows for key in _URL_KEYS)))
    has_urls = scheme.text("type") not in ("apiKey", "http", "basic")
    return ", ".join(filter(None, (_scheme_kind(scheme), *(urls if has_urls else ()))))


def _scheme_kind(scheme: Node) -> str:
    """Return the kind of a scheme, such as `HTTP bearer`, ``apiKey: header `X-Key` `` or `oauth2`."""
    kind = scheme.text("type")
    if kind == "apiKey":
        return f"apiKey: {scheme.text('in')} `{scheme.text('name')}`"
    return f"HTTP {scheme.text('scheme') or kind}" if kind in ("http", "basic") else kind


def credential_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """Return the parameters that carry credentials, except those that the operation declares itself.

    Raises SourceError.
    """
    declared = {parameter.name.lower() for parameter in operation.parameters}
    alternatives = list(_alternatives(operation))
    credentials: dict[tuple[str, str], Parameter] = {}
    for requirement in chain.from_iterable(alternatives):
        parameter = _credential_parameter(requirement, required=len(alternatives) == 1)
        if parameter is not None and not _is_declared(parameter, requirement, declared):
            credentials.setdefault((parameter.name.lower(), parameter.example), parameter)
    return tuple(credentials.values())


def _is_declared(parameter: Parameter, requirement: _SchemeRequirement, declared: set[str]) -> bool:
    if requirement.scheme.text("type") == "oauth2":
        return bool(
            {name.replace("_", "").replace("-", "") for name in declared} & _TOKEN_PARAMETERS
        )
    return parameter.name.lower() in declared


def _credential_parameter(requirement: _SchemeRequirement, required: bool) -> Parameter | None:
    scheme = requirement.scheme
    kind, text = scheme.text("type"), scheme.text("description")
    if kind == "apiKey" and scheme.text("name"):
        name, location, example = scheme.text("name")[:200], scheme.text("in"), ""
    elif kind in ("http", "basic", "oauth2", "openIdConnect"):
        default = "basic" if kind == "basic" else "bearer"
        auth_scheme = (scheme.text("scheme") or default).capitalize()
        placeholder = "credentials" if auth_scheme == "Basic" else "token"
        token = scheme.text("bearerFormat") or placeholder
        name, location, example = "Authorization", "header", f"{auth_scheme} {{{token}}}"
    else:
        return None
    return Parameter(
        name=name,
        required=required,
        description=text or ("" if kind == "apiKey" else _scheme_label(scheme)) or requirement.name,
        example=example[:200],
        location=location or "header",
    )
