"""What is left of a run where texts are not to leave: APIDESK_TRACE_CONTENT=false."""

import re
from typing import Any

KEPT = ("session_id", "request_id", "answer_id", "rung", "revision_id", "langgraph_node")
"""Metadata that are names or ids; LangSmith's own begin with `ls_` and name the model."""

_NAME = re.compile(r"[A-Za-z_]\w*(?=\()", re.ASCII)


def redact_run(shown: dict[str, Any]) -> dict[str, Any]:
    """Of a run's outputs, metadata or error: token usage, ids and scores of documents, the error's name.

    LangSmith's client calls it for each of the three, an error being `{"error": text}`.
    """
    kept = {key: value for key, value in shown.items() if key in KEPT or key.startswith("ls_")}
    if usage := _usage(shown):
        kept["usage_metadata"] = usage
    if isinstance(documents := shown.get("documents"), list):
        kept["documents"] = [_document(each) for each in documents if isinstance(each, dict)]
    if "error" in shown:
        name = _NAME.match(str(shown["error"]))
        kept["error"] = name[0] if name else "error"
    return kept


def _usage(shown: dict[str, Any]) -> Any:
    """The token usage of a model's run: it stands in its metadata, and deep in its outputs."""
    try:
        return shown["generations"][0][0]["message"]["kwargs"].get("usage_metadata")
    except (KeyError, IndexError, TypeError):
        return shown.get("usage_metadata")


def _document(document: dict[str, Any]) -> dict[str, Any]:
    """As LangSmith shows documents, without what they say."""
    fields = document.get("kwargs", document)
    score = fields.get("metadata", {}).get("score")
    return {"page_content": "", "metadata": {"id": fields.get("id"), "score": score}}
