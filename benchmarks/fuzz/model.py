"""A scripted model that answers every request, sometimes with unusual text."""

import random
from typing import Any

from tests.model_script import Recorded, Reply, ToolCall

STEPS = (
    "It is in the documentation. [1]",
    "Nobody cites this.",
    "`/no/such/path` stands nowhere. [2][99]",
    "看 https://elsewhere.example/a?b=c 。[1]",
    "\N{REPLACEMENT CHARACTER} \x07 <b>[1]</b>",
)

ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"query": "发货"},
    {"query": ""},
    {"query": 7, "k": [None, 1.5e300, {"deep": [True]}]},
    {},
)


class Model:
    """A deterministic scripted model."""

    def __init__(self) -> None:
        self._random = random.Random(7)

    def __call__(self, request: Recorded) -> Any:
        """Return a reply to a chat request."""
        prompt = request.text
        if request.body.get("tools") and "response_format" not in request.body:
            return self._look_up(request)
        if "<history>" in prompt:
            return {"question": "what does error 44203 mean?", "smallTalk": False}
        if "<documents>" not in prompt:
            return self._classify()
        steps = self._random.sample(STEPS, self._random.randint(1, len(STEPS)))
        return {"question": "?", "introduction": "", "answer": steps, "relatedUrl": ["x"]}

    def _look_up(self, request: Recorded) -> Reply:
        """Call one available tool, then answer."""
        if any(message["role"] == "tool" for message in request.body["messages"]):
            return Reply("That is enough.")
        tool = self._random.choice(request.body["tools"])["function"]["name"]
        return Reply(tool_calls=[ToolCall(tool, self._random.choice(ARGUMENTS))])

    def _classify(self) -> dict[str, Any]:
        return {
            "type": self._random.choice(("api_call", "api_call", "general", "unknown")),
            "apiName": self._random.choice((None, "Update SKU Price", "no such API")),
            "requestParam": {"a": [1, None, {"b": 2.5}]},
            "response": self._random.choice((None, "text", {"code": 44203}, [1, 2.5], 7, False)),
            "searchTerms": ["price", "价格"],
        }
