"""Templates that turn documents into Markdown.
API documents in the JSON format of `schemas.api_document`: one file, one API.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from pydantic import ValidationError

from ingestion.sources.folder import (
    FileResult,
    KnownFiles,
    PathValues,
    page_url,
    read_files,
    read_text,
)
from ingestion.sources.labels import LABELS, SectionLabels
from schemas.api_document import ApiDocument, Parameter
from schemas.document import Section, SectionKind, SourceDocument
from schemas.errors import SourceError
from schemas.source import ApiDocsSourceConfig, OpenApiSourceConfig, SourceLimits


def cell(value: object) -> str:
    """`value` as the text of one Markdown table cell."""
    return " ".join(str(value).split()).replace("|", "\\|")


def pretty(value: object) -> str:
    """`value` as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def fenced(value: object) -> str:
    """`value` as a block of code: JSON, or text as it stands."""
    if not isinstance(value, str):
        return f"```json\n{pretty(value)}\n```"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", value)), default=0))
    return f"{fence}\n{value.strip()}\n{fence}"


@lru_cache
def load_section_template(name: str) -> Template:
    """The template `name`.md.j2 of this folder."""
    environment = Environment(
        loader=PackageLoader("ingestion.sources"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=False,
        keep_trailing_newline=False,
    )
    environment.filters.update(cell=cell, pretty=pretty, fenced=fenced)
    return environment.get_template(f"{name}.md.j2")


TableRow = tuple[str, ...]

SUFFIXES = {".json"}


def read_api_docs(
    source: ApiDocsSourceConfig, limits: SourceLimits, known: KnownFiles
) -> Iterator[FileResult]:
    """One document an API, with up to seven sections."""
    return read_files(
        source, SUFFIXES, limits, known, lambda path: api_document(source, _parse(path))
    )


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
    values: PathValues = MappingProxyType({}),
) -> SourceDocument:
    """`api` as a document of `source`; `values` are further names for its `page_url` templates.

    Raises ConfigurationError for a `page_url` that is no template.
    """
    fields = api.model_dump(by_alias=True, exclude_none=True)
    return SourceDocument(
        id=api.api_id,
        source=source.name,
        title=api.name,
        language=api.language,
        page_url=api.page_url or page_url(source.page_url, {**fields, **values}),
        service_id=api.service_id,
        service_name=api.service_name,
        api_id=api.api_id,
        api_name=api.name,
        api_url=api.url,
        metadata=_metadata(api),
        sections=tuple(_sections(api)),
    )


def _metadata(api: ApiDocument) -> dict[str, str]:
    version = {"version": api.version} if api.version else {}
    return version | ({"deprecated": "true"} if api.deprecated else {})


def _sections(api: ApiDocument) -> Iterator[Section]:
    labels = LABELS[api.language]
    template = load_section_template("api_section")
    for kind, rows in _tables(api, labels):
        columns = _columns(labels, rows)
        body = template.render(kind=kind, api=api, labels=labels, rows=rows, columns=columns)
        body = body.strip()
        if body:
            yield Section(kind=kind, heading=(labels.sections[kind],), body=body)


def _tables(
    api: ApiDocument, labels: SectionLabels
) -> Iterator[tuple[SectionKind, list[TableRow]]]:
    yield "request_headers", _with_location(api.request_headers, labels)
    yield "request_url", []
    yield "public_parameters", _with_location(api.public_parameters, labels)
    yield "request_parameters", _with_location(api.request_parameters, labels)
    yield "response_parameters", _with_location(api.response_parameters, labels)
    yield "error_codes", [(e.code, e.message, e.cause, e.remedy) for e in api.error_codes]
    yield "permission_package", [(p.name, p.description) for p in api.permission_packages]


def _columns(labels: SectionLabels, rows: list[TableRow]) -> TableRow:
    """The titles of a parameter table, whose rows may say where each is sent."""
    with_location = bool(rows) and len(rows[0]) > len(labels.parameter_columns)
    return (*labels.parameter_columns, *((labels.location_column,) if with_location else ()))


def _with_location(parameters: tuple[Parameter, ...], labels: SectionLabels) -> list[TableRow]:
    """The table's rows; where a parameter is sent is a column when any of them says so."""
    rows = list(_parameter_rows(parameters, labels))
    return rows if any(row[-1] for row in rows) else [row[:-1] for row in rows]


def _parameter_rows(
    parameters: Iterable[Parameter], labels: SectionLabels, parent: str = ""
) -> Iterator[TableRow]:
    """A row a parameter; children follow their parent under its dotted name."""
    for parameter in parameters:
        name = f"{parent}.{parameter.name}" if parent else parameter.name
        yield (
            name,
            parameter.type,
            labels.yes if parameter.required else labels.no,
            _description(parameter, labels),
            parameter.example,
            parameter.location,
        )
        yield from _parameter_rows(parameter.children, labels, name + "[]" * parameter.dimensions)


def _description(parameter: Parameter, labels: SectionLabels) -> str:
    if not parameter.values:
        return parameter.description
    values = "; ".join(f"`{v.value}` {v.meaning}".strip() for v in parameter.values)
    return f"{parameter.description} {labels.values}: {values}".strip()
