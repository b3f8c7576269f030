"""Decides what traces contain: shortens chunks, masks secrets, or removes all texts."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import lru_cache, partial
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from app.masking.masking import SecretScan, mask
from app.masking.secret_names import names_secret
from schemas.answer import Answer
from schemas.document import Chunk, RetrievedChunk

ANSWER_METADATA = ("type", "language", "confidence", "degraded", "answered_by")
"""Fields of an answer that are added to the metadata of its trace, under their names in JSON."""

KEPT_METADATA = {
    *("session_id", "request_id", "answer_id", "rung", "prompt", "revision_id", "langgraph_node"),
    *map(to_camel, ANSWER_METADATA),
}
"""Metadata that `redact_run` keeps, because they contain no text of a question or an answer.

LangSmith's own metadata, such as the name and parameters of the model, are kept too. Their keys begin with
`ls_`.
"""

SHOWN_METADATA = ("title", "section", "page_url", "score")
"""Metadata of retrieved documents in traces."""

CACHED_TEXTS = 256
"""Number of texts whose scan for secrets is kept, because most runs of a trace repeat the same texts."""

PROMPT_FIELDS = ("messages", "prompts")
"""Fields of a run that contain prompts.

The documents in a prompt are between `<documents>` and `</documents>`. In every text that is inserted into
a prompt, such as the question, these tags are escaped. `_PROMPTED_DOCUMENTS` therefore matches only the
documents.
"""

_PROMPTED_DOCUMENTS = re.compile(r"(<documents>\n.*?\n</documents>)", re.DOTALL)
"""The documents in a prompt, or in the result of a tool."""

_ERROR_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)
"""The class of the error at the start of a run's field `error`, such as ValueError in `ValueError('…')`."""


def summarise_chunks(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs or outputs of a run, shortened and converted to JSON values if possible.

    Chunks are reduced to ids and scores, and an Answer loses the texts of its sources. Prompts and
    LangChain's Documents keep their texts.
    """
    return {key: _summarise(value) for key, value in fields.items()}


def _summarise(value: Any) -> Any:
    match value:
        case RetrievedChunk():
            return {"id": value.chunk.id, "score": value.score}
        case Chunk():
            return {"id": value.id}
        case Answer():
            without_texts = {"sources": {"__all__": {"text"}}}
            return value.model_dump(mode="json", by_alias=True, exclude=without_texts)
        case Document():
            shown = {key: value.metadata.get(key) for key in SHOWN_METADATA}
            return Document(id=value.id, page_content=value.page_content, metadata=shown)
        case dict():
            return {key: _summarise(item) for key, item in value.items()}
        case list() | tuple():
            return [_summarise(item) for item in value]
    return _dump(value)


def _dump(value: Any) -> Any:
    """Return a pydantic model or a dataclass as LangSmith's client sends it, and other values unchanged."""
    if isinstance(value, BaseModel):
        try:
            return value.model_dump(mode="json", exclude_none=True, warnings=False)
        except Exception:  # a field has no JSON value, as in some models of LangChain
            return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _summarise(getattr(value, field.name)) for field in fields_of(value)}
    return value


class SecretMask:
    """Shortens the inputs or outputs of a run as `summarise_chunks` does, and masks secrets in them.

    Documents are not masked: they are long, and every caller may read them. Results are cached, because
    LangSmith's client calls this object on the event loop.
    """

    def __init__(self) -> None:
        self._scan = lru_cache(CACHED_TEXTS)(SecretScan)
        self._mask_known = lru_cache(CACHED_TEXTS)(_mask_known)

    def __call__(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the masked fields.

        A secret in one field is also masked where another field quotes it.
        """
        shown = summarise_chunks(fields)
        known = self._find_secrets(shown)
        return {
            key: _map_texts(value, partial(self._mask, key, known)) for key, value in shown.items()
        }

    def _find_secrets(self, fields: dict[str, Any]) -> dict[str, str]:
        """Return the secrets in the fields, except those in documents, with their labels."""
        secrets: dict[str, str] = {}
        for key, value in fields.items():
            for text in _texts({key: value}):
                for part in _split_at_documents(key, text)[::2]:
                    secrets.update(self._scan(part).secrets)
        return secrets

    def _mask(self, field: str, known: Mapping[str, str], text: str) -> str:
        parts = _split_at_documents(field, text)
        parts[::2] = [self._mask_part(part, known) for part in parts[::2]]
        return "".join(parts)

    def _mask_part(self, part: str, known: Mapping[str, str]) -> str:
        quoted = frozenset(item for item in known.items() if item[0] in part)
        return self._mask_known(part, quoted) if quoted else self._scan(part).masked


def _split_at_documents(field: str, text: str) -> list[str]:
    """Return the parts of a text in `field`; every second part consists of documents."""
    return _PROMPTED_DOCUMENTS.split(text) if field in PROMPT_FIELDS else [text]


def _mask_known(text: str, known: frozenset[tuple[str, str]]) -> str:
    return mask(text, dict(known))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in the JSON value of a run.

    If the name of a value shows that it is a secret, the value is also yielded with its name, for example
    as `"token": "…"`. In `{"token": "abc"}` and `{"name": "token", "value": "abc"}`, the name is token.
    """
    match value:
        case str():
            yield value
        case dict():
            named = [*value.items(), (value.get("name"), value.get("value"))]
            for name, item in named:
                if isinstance(name, str) and isinstance(item, str) and names_secret(name):
                    yield f'"{name}": "{item}"'
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _map_texts(item, change) for key, item in value.items()}
        case list():
            return [_map_texts(item, change) for item in value]
    return value


def redact_run(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run without texts.

    These fields remain: the token usage, the ids and scores of documents, the type of an error,
    KEPT_METADATA, and fields whose keys begin with `ls_`.

    LangSmith's client calls this function for the outputs of a run, for its metadata, and for its error,
    which it passes as `{"error": text}`.
    """
    redacted = {
        key: value for key, value in fields.items() if key in KEPT_METADATA or key.startswith("ls_")
    }
    if usage := _usage_metadata(fields):
        redacted["usage_metadata"] = usage
    if isinstance(documents := fields.get("documents"), list):
        redacted["documents"] = [
            _redact_document(document) for document in documents if isinstance(document, dict)
        ]
    if "error" in fields:
        name = _ERROR_NAME.match(str(fields["error"]))
        redacted["error"] = name[0] if name else "error"
    return redacted


def _usage_metadata(fields: dict[str, Any]) -> Any:
    """Return the token usage in the outputs or the metadata of a model's run, or None."""
    try:
        return fields["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return fields.get("usage_metadata")


def _redact_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the id and score of a document, in the structure that LangSmith displays."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}
