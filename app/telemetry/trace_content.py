"""Selects the parts of a run's inputs, outputs and metadata that traces contain."""

import re
from typing import Any

from langchain_core.documents import Document

from schemas.answer import Answer
from schemas.document import Chunk, RetrievedChunk

ANSWER_METADATA = ("type", "language", "confidence", "degraded", "answered_by")
"""Fields of an answer that are added to the metadata of its trace, under their names in JSON."""

KEPT_METADATA = {
    *("session_id", "request_id", "answer_id", "rung", "prompt", "revision_id", "langgraph_node"),
    *("type", "language", "confidence", "degraded", "answeredBy"),
}
"""Metadata that are kept in redacted traces, because they contain no text of a question or an answer.

LangSmith's own metadata, which name the model, begin with `ls_` and are kept too.
"""

SHOWN_METADATA = ("title", "section", "page_url", "score")
"""Metadata of retrieved documents in traces."""

_ERROR_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def summarise_chunks(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs or outputs of a run without the texts of chunks.

    Only the ids and scores of chunks remain. LangChain Documents and prompts keep their texts.
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
    return value


def redact_run(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run without texts.

    The token usage, the ids and scores of documents, the type of an error, and KEPT_METADATA remain.
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
    """Return the structure in which LangSmith displays documents, without their text."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}
