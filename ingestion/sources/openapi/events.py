"""Events, which are webhooks and callbacks: the requests that the platform sends.

The documents about these requests have no API id, API name or API URL, so that they do not look like
operations that a developer can call.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from ingestion.sources.api_docs import api_document
from ingestion.sources.folder import PageValues
from ingestion.sources.openapi.document import operation_name
from ingestion.sources.openapi.operations import (
    PathOperation,
    PlatformEvent,
    path_error,
    path_operations,
)
from ingestion.sources.openapi.references import Node
from prompts.user_text import user_text
from schemas.document import ApiDocument, Parameter, Section, SourceDocument
from schemas.errors import SourceError
from schemas.platform import OpenApiSourceConfig

MAX_CALLBACKS = 50
"""Maximum number of callbacks of an operation, and of requests of all its callbacks.

Further callbacks and requests are ignored.
"""

MAX_CALLERS = 10
"""Maximum number of operations that the document of a callback lists."""

MAX_FIELDS = 100
"""Maximum number of headers and fields of an event. The most deeply nested fields are left out first.

Without this limit, GitHub's webhooks would have more chunks than its operations, because each event repeats
large objects such as the repository.
"""


def event_operations(
    root: Node, operations: Iterable[PathOperation]
) -> list[PathOperation | SourceError]:
    """Return the requests of the webhooks and of the callbacks of `operations`.

    A callback to which several operations refer is returned once. A SourceError takes the place of each
    webhook or callback that cannot be read.
    """
    found: list[PathOperation | SourceError] = []
    for request in chain(path_operations(root["webhooks"]), path_operations(root["x-webhooks"])):
        if isinstance(request, PathOperation):
            request = replace(request, event=PlatformEvent("webhook", request.path))
        found.append(request)
    callers_by_request: dict[int, list[PathOperation]] = {}
    for operation in operations:
        for name, request in islice(_callback_requests(operation), MAX_CALLBACKS):
            if isinstance(request, SourceError):
                found.append(request)
                continue
            callers = callers_by_request.setdefault(id(request.node.value), [])
            if not callers:
                found.append(replace(request, event=PlatformEvent("callback", name, callers)))
            callers.append(operation)
    return found


def _callback_requests(
    operation: PathOperation,
) -> Iterator[tuple[str, PathOperation | SourceError]]:
    """Yield the requests of the callbacks, each with the name of its callback.

    The path of a request is an expression for the URL. A SourceError takes the place of each callback or
    request that cannot be read.
    """
    for name, callback in islice(operation.node["callbacks"].items(), MAX_CALLBACKS):
        if name.startswith("x-"):
            continue
        try:
            target = callback.resolve()
        except SourceError as error:
            yield name, path_error(f"{operation}: {name}", str(error))
            continue
        for request in path_operations(target):
            if isinstance(request, SourceError):
                request = path_error(f"{operation}: {name}", str(request))
            yield name, request


def event_document(
    source: OpenApiSourceConfig, api: ApiDocument, event: PlatformEvent, values: PageValues
) -> SourceDocument:
    """Return a document with one section of prose for the webhook or callback that `api` describes.

    The section contains the description, a table of what the platform sends, and the expected response.
    Raises ConfigurationError if a `page_url` template is malformed.
    """
    headers = (row.model_copy(update={"location": "header"}) for row in api.request_headers)
    fields = [*headers, *api.public_parameters, *api.request_parameters]
    sent = _limit_fields(fields)
    is_complete = list(sent) == fields
    content = {"request_headers": (), "public_parameters": (), "request_parameters": sent}
    document = api_document(source, api.model_copy(update=content), values)
    bodies = {section.kind: section.body for section in document.sections}
    labels = user_text(api.language).api_document
    facts = [
        f"- {labels.event_kinds[event.kind]}: `{event.name}`",
        f"- {labels.method}: `{api.method}`",
    ]
    if event.kind == "callback":
        facts.append(f"- {labels.callback_url}: `{api.url}`")
        facts += [
            f"- {labels.sent_after}: {operation_name(caller)}"
            for caller in event.callers[:MAX_CALLERS]
        ]
    response = bodies.get("response_parameters", "")
    parts = [
        f"**{labels.deprecated}**" if api.deprecated else "",
        api.description,
        labels.event,
        "\n".join(facts),
        bodies.get("request_parameters", ""),
        "" if is_complete else labels.fields_omitted,
        response and f"**{labels.expected_response}**\n\n{response}",
        bodies.get("error_codes", ""),
    ]
    section = Section(kind="prose", heading=(), body="\n\n".join(filter(None, parts)))
    return document.model_copy(
        update={"api_id": "", "api_name": "", "api_url": "", "sections": (section,)}
    )


def _limit_fields(fields: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return at most `MAX_FIELDS` fields. The deepest levels are left out first."""
    level, count, depth = list(fields), 0, 0
    while level and count + len(level) <= MAX_FIELDS:
        count, depth = count + len(level), depth + 1
        level = [child for field in level for child in field.children]
    return tuple(_prune(field, depth) for field in fields[:MAX_FIELDS])


def _prune(field: Parameter, depth: int) -> Parameter:
    """Return `field` with at most `depth` levels, counting its own level."""
    children = tuple(_prune(child, depth - 1) for child in field.children) if depth > 1 else ()
    return field.model_copy(update={"children": children})
