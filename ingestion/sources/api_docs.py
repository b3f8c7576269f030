"""Reads folders of API documents: JSON files in the format of `ApiDocument`, one per operation."""

import re
from collections.abc import Iterable, Iterator
from itertools import compress
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from ingestion.chunking import cell, load_template
from ingestion.sources.folder import FolderReader, PageValues, page_url, read_text
from ingestion.sources.page_version import document_version
from ingestion.text.markdown_blocks import markdown_table
from ingestion.text.typography import has_chinese, join_texts, label_with
from prompts.user_text import SectionLabels, user_text
from schemas.document import (
    ApiDocument,
    Chunk,
    Parameter,
    Section,
    SectionKind,
    SourceDocument,
)
from schemas.errors import SourceError
from schemas.platform import ApiDocsSourceConfig, OpenApiSourceConfig, SourceLimits

SUFFIXES = {".json"}

TableRow = tuple[str, ...]


def _documents(
    source: ApiDocsSourceConfig, _limits: SourceLimits, path: Path
) -> list[SourceDocument]:
    return [api_document(source, _parse(path))]


def _parse(path: Path) -> ApiDocument:
    try:
        return ApiDocument.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise SourceError(f"{where}: {first['msg']}") from None


def api_document(
    source: ApiDocsSourceConfig | OpenApiSourceConfig,
    api: ApiDocument,
    values: PageValues = MappingProxyType({}),
) -> SourceDocument:
    """Return `api` as a document of `source`, with up to seven sections.

    If `api` has no `page_url`, the URL is made from a `page_url` template of `source`. Placeholders in the
    template are filled with the fields of `api` and with `values`. Raises ConfigurationError if a template
    is malformed.
    """
    fields = api.model_dump(by_alias=True, exclude_none=True)
    url = api.page_url or page_url(source.page_url, {**fields, **values})
    version = document_version(api.api_id, url, source.path, source.name, api.url)
    return SourceDocument(
        id=api.api_id,
        source=source.name,
        title=api.name,
        language=api.language,
        page_url=url,
        service_id=api.service_id,
        service_name=api.service_name,
        api_id=api.api_id,
        api_name=api.name,
        api_url=api.url,
        metadata=_metadata(api, version),
        sections=tuple(api_sections(api)),
    )


def _metadata(api: ApiDocument, found_version: str) -> dict[str, str]:
    """Return the metadata `version` (that of `api`, or else `found_version`) and `deprecated`.

    A key without a value is left out.
    """
    name = api.version or found_version
    version = {"version": name} if name else {}
    return version | ({"deprecated": "true"} if api.deprecated else {})


def api_sections(api: ApiDocument) -> Iterator[Section]:
    """Yield the sections of `api` that have content."""
    labels = user_text(api.language).api_document
    template = load_template("api_section")
    for kind, rows in _tables(api, labels):
        body = template.render(kind=kind, api=api, labels=labels, rows=rows).strip()
        if body:
            yield Section(kind=kind, heading=(labels.sections[kind],), body=body)


def parameter_table(parameters: tuple[Parameter, ...], labels: SectionLabels) -> str:
    """Return a Markdown table of `parameters` and their children; empty if there are no parameters."""
    header, *rows = _table_rows(parameters, labels) or [()]
    return markdown_table([header, *([cell(text) for text in row] for row in rows)]) if rows else ""


def mark_deprecated(about: str, labels: SectionLabels) -> str:
    """Return the description of a parameter with the remark that the parameter is deprecated."""
    mark = labels.deprecated_parameter
    return f"{mark}{about}" if has_chinese(mark) else f"{mark} {about}".strip()


def api_method(chunk: Chunk) -> str:
    """Return the HTTP method in a chunk of the kind `request_url`; empty for other chunks."""
    if chunk.kind != "request_url":
        return ""
    label = user_text(chunk.language).api_document.method
    method = re.search(rf"^- {label}: `(\w+)`$", chunk.body, re.MULTILINE)
    return method[1] if method else ""


def _tables(
    api: ApiDocument, labels: SectionLabels
) -> Iterator[tuple[SectionKind, list[TableRow]]]:
    """Yield each kind of section with the rows of its table, the header first.

    If the section has no table, the list of rows is empty.
    """
    yield "request_headers", _table_rows(api.request_headers, labels)
    yield "request_url", []
    yield "public_parameters", _table_rows(api.public_parameters, labels)
    yield "request_parameters", _table_rows(api.request_parameters, labels)
    yield "response_parameters", _table_rows(api.response_parameters, labels)
    errors = [(e.code, e.message, e.cause, e.remedy) for e in api.error_codes]
    yield "error_codes", [labels.error_columns, *errors] if errors else []
    packages = [(p.name, p.description) for p in api.permission_packages]
    yield "permission_package", [labels.permission_columns, *packages] if packages else []


def _table_rows(parameters: tuple[Parameter, ...], labels: SectionLabels) -> list[TableRow]:
    """Return the rows of a table, the header first; empty if there are no parameters.

    The columns "required" and "location" are left out if they are empty in every row.
    """
    header = (*labels.parameter_columns, labels.location_column)
    rows = list(_parameter_rows(parameters, labels))
    # Column 2 is "required", and column 5 is "location".
    is_shown = [
        index not in (2, 5) or any(row[index] for row in rows) for index in range(len(header))
    ]
    return [tuple(compress(row, is_shown)) for row in (header, *rows)] if rows else []


def _parameter_rows(
    parameters: Iterable[Parameter], labels: SectionLabels, parent: str = ""
) -> Iterator[TableRow]:
    """Yield a row per parameter. Children follow their parent and have dotted names."""
    for parameter in parameters:
        name = f"{parent}.{parameter.name}" if parent else parameter.name
        yield (
            name,
            parameter.type,
            _requirement(parameter, labels),
            _description(parameter, labels),
            parameter.example,
            parameter.location,
        )
        yield from _parameter_rows(parameter.children, labels, name + "[]" * parameter.dimensions)


def _requirement(parameter: Parameter, labels: SectionLabels) -> str:
    if isinstance(parameter.required, bool):
        return labels.yes if parameter.required else labels.no
    return parameter.required or ""


def _description(parameter: Parameter, labels: SectionLabels) -> str:
    if not parameter.values:
        return parameter.description
    separator = "; "
    if has_chinese(labels.values):
        separator = "；" if any(value.meaning for value in parameter.values) else "、"
    values = separator.join(f"`{v.value}` {v.meaning}".strip() for v in parameter.values)
    if parameter.description.endswith((":", "：")):
        return label_with(parameter.description, values)
    return join_texts([parameter.description, label_with(labels.values, values)], " ")


READER = FolderReader[ApiDocsSourceConfig](lambda _: SUFFIXES, _documents)
