"""Describes the bodies of error responses: their fields, with the codes and messages in examples.

Most platforms return errors in the same form. A body that several operations share is described once, in a
document of its own, because its repetition in every operation would crowd out other search results. A body
of a single operation is described in a section of that operation, unless the operation's table of errors
already contains the codes of the body.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import ValidationError

from ingestion.sources.api_docs import parameter_table
from ingestion.sources.openapi.errors import error_responses, listed_codes
from ingestion.sources.openapi.operations import MediaContent, Operation
from ingestion.sources.openapi.rows import RowBuilder
from ingestion.sources.openapi.schema import SchemaReader
from ingestion.text.typography import label_with
from prompts.user_text import SectionLabels
from schemas.document import Section
from schemas.errors import SourceError

MAX_SHARED_BODIES = 20
"""Maximum number of shared bodies that are described. Bodies that more operations share take precedence."""

MAX_OWN_BODIES = 3
"""Maximum number of bodies that are described in a section of their only operation."""

MAX_ERROR_FIELDS = 40
"""Maximum number of fields of a body that are described."""

MAX_NAMED_OPERATIONS = 5
"""Maximum number of operations that are named for a shared body.

If more operations share it, none is named, because questions about each of them would find the document.
"""

_BodyKey = tuple[str, str]
"""The document that contains the schema of a body, and the schema or its reference."""


@dataclass
class _ErrorBody:
    """The schema of a body of error responses, and where it is used."""

    media: MediaContent
    statuses: set[str] = field(default_factory=set)
    operations: dict[str, str] = field(default_factory=dict)
    """Names of the operations, by method and path."""


class ErrorBodies:
    """The bodies of the error responses of one OpenAPI description."""

    def __init__(
        self, operations: Iterable[tuple[Operation, str]], max_values: int, labels: SectionLabels
    ) -> None:
        """Collect the bodies of `operations`, which are pairs of an operation and its name.

        `max_values` limits the cost of reading the schemas (see `SchemaReader`).
        """
        self._labels = labels
        self._reader = SchemaReader(max_values)
        self._bodies: dict[_BodyKey, _ErrorBody] = {}
        for operation, name in operations:
            for key, status, media in _error_media(operation):
                body = self._bodies.setdefault(key, _ErrorBody(media))
                body.statuses.add(status)
                body.operations[str(operation)] = name
        self._own: dict[str, list[_ErrorBody]] = {}
        for body in self._bodies.values():
            if len(body.operations) == 1:
                self._own.setdefault(next(iter(body.operations)), []).append(body)

    def shared_sections(self) -> tuple[Section, ...]:
        """Return a section for each body that several operations share, the most frequent first."""
        shared = [body for body in self._bodies.values() if len(body.operations) > 1]
        shared.sort(key=lambda body: -len(body.operations))
        sections = map(self._section, shared[:MAX_SHARED_BODIES])
        return tuple(section for section in sections if section.body)

    def own_sections(self, operation: Operation) -> tuple[Section, ...]:
        """Return a section for each body that only `operation` returns.

        A body whose schema lists its codes is left out, because the table of errors contains them.
        """
        own = [body for body in self._own.get(str(operation), ()) if not self._lists_codes(body)]
        heading = (self._labels.error_responses,)
        sections = [self._section(body) for body in own[:MAX_OWN_BODIES]]
        return tuple(
            section.model_copy(update={"heading": heading}) for section in sections if section.body
        )

    def _lists_codes(self, body: _ErrorBody) -> bool:
        try:
            return any(listed_codes(self._reader.read(body.media.schema), self._reader))
        except SourceError:  # `_table` cannot read the schema either, so the body gets no section
            return False

    def _section(self, body: _ErrorBody) -> Section:
        """Return the section about `body`; its text is empty if the description states no fields."""
        labels, name = self._labels, (body.media.schema.reference or "").rpartition("/")[2]
        statuses = ", ".join(f"`{status}`" for status in sorted(body.statuses))
        lines = [f"- {label_with(labels.error_body, statuses)}"]
        if 1 < len(body.operations) <= MAX_NAMED_OPERATIONS:
            names = "; ".join(body.operations.values())
            lines.append(f"- {label_with(labels.error_operations, names)}")
        table = self._table(body.media)
        text = "\n\n".join(["\n".join(lines), table]) if table else ""
        return Section(kind="prose", heading=(name or statuses.replace("`", ""),), body=text)

    def _table(self, media: MediaContent) -> str:
        """Return the table of the fields; empty if there are none, or if the schema cannot be read."""
        rows = RowBuilder(self._reader, self._labels, "response")
        rows.rows_left = MAX_ERROR_FIELDS
        try:
            has_fields = bool(self._reader.read(media.schema).structure_ids)
            fields = rows.body_rows(media, "response", "") if has_fields else ()
        except (SourceError, ValidationError):  # a faulty error body must not refuse its operation
            return ""
        return parameter_table(fields, self._labels)


def _error_media(operation: Operation) -> Iterator[tuple[_BodyKey, str, MediaContent]]:
    """Yield the first body of each error response, with its key and status.

    A body that a success response also has is left out, because the fields of that response are described.
    """
    bodies = [
        (_key(media), response.status, media)
        for response in error_responses(operation)
        for media in response.media[:1]
        if media.schema.is_object
    ]
    if bodies:
        successes = operation.success_responses
        described = {_key(media) for response in successes for media in response.media}
        yield from (body for body in bodies if body[0] not in described)


def _key(media: MediaContent) -> _BodyKey:
    return media.schema.base, media.schema.reference or repr(media.schema.value)
