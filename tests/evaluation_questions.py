"""Questions about the samples with their gold documents, and a function that writes them to a file."""

import json
from pathlib import Path

SIGNING = "https://open.example.com/docs/signing"

QUESTIONS = [
    {"question": "签名怎么算", "gold": [SIGNING], "type": "general"},
    {
        "query": "订单发货接口的参数",
        "gold": "订单发货",
        "type": "api_call",
        "answer": ["passed over"],
    },
    {"question": "refund flow and rate limits", "gold": ["refund-flow", "rate-limits"]},
    {"question": "今天天气怎么样"},
]


def write_lines(path: Path, *lines: object) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts), encoding="utf-8")
    return path
