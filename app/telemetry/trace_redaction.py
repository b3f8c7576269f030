"""Removes texts from traced runs, for APIDESK_TRACE_CONTENT=false."""

import re
from typing import Any

KEPT_METADATA = ("session_id", "request_id", "answer_id", "rung", "revision_id", "langgraph_node")
"""Metadata that are names or ids. LangSmith's own metadata begin with `ls_` and name the model."""

_ERROR_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def redact_run(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the token usage, the ids and scores of documents, and the error's type.

    LangSmith's client calls this function for a run's outputs, for its metadata, and for its error,
    which it passes as `{"error": text}`.
    """
    redacted = {
        key: value for key, value in fields.items() if key in KEPT_METADATA or key.startswith("ls_")
    }
    if usage := _usage_metadata(fields):
        redacted["usage_metadata"] = usage
    if isinstance(documents := fields.get("documents"), list):
        redacted["documents"] = [
            _redact_document(each) for each in documents if isinstance(each, dict)
        ]
    if "error" in fields:
        name = _ERROR_NAME.match(str(fields["error"]))
        redacted["error"] = name[0] if name else "error"
    return redacted


def _usage_metadata(fields: dict[str, Any]) -> Any:
    """A model's run holds its token usage in its metadata, and deep in its outputs."""
    try:
        return fields["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return fields.get("usage_metadata")


def _redact_document(document: dict[str, Any]) -> dict[str, Any]:
    """The structure in which LangSmith displays documents, without their text."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}
