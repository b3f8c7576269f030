"""The kinds of folder sources, with functions that write and read their documents."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingestion.sources.registry import FileResult, read_source
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import (
    ApiDocsSourceConfig,
    FilesSourceConfig,
    MarkdownSourceConfig,
    SourceConfig,
    SourceLimits,
)

API = {"serviceId": "orders", "apiId": "1110", "name": "订单发货", "url": "/order/ship"}
GUIDE = """---
title: Signing
category: security
updated: 2026-01-31
version: 1.0
url: https://docs.example.com/signing
draft:
---
Intro.

# Signing

## Steps

1. Sort.

### Example

```python
sign()
```

## Errors

isv.invalid-signature
"""


@dataclass(frozen=True)
class Kind:
    """A kind of source, with functions that create its documents."""

    make: Callable[..., SourceConfig]
    suffix: str
    page: Callable[[str], str]
    """Returns the text of a valid document with this id."""
    link: str
    """A `page_url` template that every document of this kind can fill."""


def api_json(**fields: object) -> str:
    return json.dumps(API | fields, ensure_ascii=False)


KINDS = {
    "api_docs": Kind(
        lambda **fields: ApiDocsSourceConfig(kind="api_docs", **fields),
        ".json",
        lambda name: api_json(apiId=name),
        "https://x.y/#/api?apiId={apiId}",
    ),
    "markdown": Kind(
        lambda **fields: MarkdownSourceConfig(kind="markdown", **fields),
        ".md",
        lambda name: f"# {name}\n\n这一页说明怎么发货、怎么查询物流、怎么取消订单。",
        "https://x.y/{path}",
    ),
    "files": Kind(
        lambda **fields: FilesSourceConfig(kind="files", suffixes=(".html",), **fields),
        ".html",
        lambda name: f"<h1>{name}</h1><p>这一页说明怎么发货、怎么查询物流、怎么取消订单。",
        "https://x.y/{path}",
    ),
}


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read_results(
    make: Callable[..., SourceConfig], folder: Path, **fields: object
) -> list[FileResult]:
    return list(read_source(make(name="docs", path=folder, **fields), SourceLimits()))


def read(make: Callable[..., SourceConfig], folder: Path, **fields: object) -> list[SourceDocument]:
    documents, refused = split_results(read_results(make, folder, **fields))
    assert not refused
    return [document.model_copy(update={"fingerprint": ""}) for document in documents]


def split_results(results: list[FileResult]) -> tuple[list[SourceDocument], list[str]]:
    """Return the documents in `results`, and the messages of refused documents."""
    return (
        [item for item in results if isinstance(item, SourceDocument)],
        [str(item) for item in results if isinstance(item, SourceError)],
    )
