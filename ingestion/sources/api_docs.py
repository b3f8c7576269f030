"""API documents in the JSON format of `schemas.api_document`: one file, one API."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from ingestion.labels import LABELS, Labels
from ingestion.sources.folder import list_files, page_url, read_text
from ingestion.templates import load
from schemas.api_document import ApiDocument, Parameter
from schemas.document import Section, SectionKind, SourceDocument
from schemas.errors import SourceError
from schemas.platform import ApiDocsSource

Row = tuple[str, ...]

SUFFIXES = {".json"}


def read_api_docs(source: ApiDocsSource) -> Iterator[SourceDocument]:
    """One document an API, with up to seven sections."""
    for path in list_files(source.path, SUFFIXES):
        yield _document(source, _parse(path))


def _parse(path: Path) -> ApiDocument:
    try:
        return ApiDocument.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise SourceError(f"{path}: {where}: {first['msg']}") from None


def _document(source: ApiDocsSource, api: ApiDocument) -> SourceDocument:
    fields = api.model_dump(by_alias=True, exclude_none=True)
    return SourceDocument(
        id=api.api_id,
        source=source.name,
        title=api.name,
        language=api.language,
        page_url=api.page_url or page_url(source.page_url, fields),
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
    template = load("api_section")
    for kind, rows in _tables(api, labels):
        body = template.render(kind=kind, api=api, labels=labels, rows=rows).strip()
        if body:
            yield Section(kind=kind, heading=(labels.sections[kind],), body=body)


def _tables(api: ApiDocument, labels: Labels) -> Iterator[tuple[SectionKind, list[Row]]]:
    yield "request_headers", list(_parameter_rows(api.request_headers, labels))
    yield "request_url", []
    yield "public_parameters", list(_parameter_rows(api.public_parameters, labels))
    yield "request_parameters", list(_parameter_rows(api.request_parameters, labels))
    yield "response_parameters", list(_parameter_rows(api.response_parameters, labels))
    yield "error_codes", [(e.code, e.message, e.cause, e.remedy) for e in api.error_codes]
    yield "permission_package", [(p.name, p.description) for p in api.permission_packages]


def _parameter_rows(
    parameters: Iterable[Parameter], labels: Labels, parent: str = ""
) -> Iterator[Row]:
    """A row a parameter; children follow their parent under its dotted name."""
    for parameter in parameters:
        name = f"{parent}.{parameter.name}" if parent else parameter.name
        yield (
            name,
            parameter.type,
            labels.yes if parameter.required else labels.no,
            _description(parameter, labels),
            parameter.example,
        )
        yield from _parameter_rows(parameter.children, labels, name)


def _description(parameter: Parameter, labels: Labels) -> str:
    if not parameter.values:
        return parameter.description
    values = "; ".join(f"`{v.value}` {v.meaning}".strip() for v in parameter.values)
    return f"{parameter.description} {labels.values}: {values}".strip()
