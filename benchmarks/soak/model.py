"""The scripted model of the soak test: it answers from the prompt and fails sometimes.

    python -m benchmarks.soak.model 0.05

The argument is the share of calls that fail. The server prints its address and, when its input ends, the
numbers of calls and failures.
"""

import json
import random
import re
import sys
from collections import Counter
from typing import Any

from benchmarks.soak.documents import KINDS, NAMES, SENTENCES, Aspect
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer

FAILURES = {
    "500": Reply("broken", status=500),
    "429": Reply("slow down", status=429, headers={"retry-after": "0.2"}),
    "reset": Reply('{"answer": ["', action="reset", reset_after=60),
    "cut off": Reply('{"answer": ["', action="close", reset_after=60),
    "late": Reply("late", status=503, delay=2.0),
}

NONCE = re.compile(r"\bref[0-9a-f]{8}\b")
_TOPIC = re.compile(
    "|".join(
        [
            rf"(?:{'|'.join(NAMES['en'])}) (?:{'|'.join(KINDS['en'])})",
            rf"(?:{'|'.join(NAMES['zh'])})(?:{'|'.join(KINDS['zh'])})",
        ]
    )
)
_DOCUMENT = re.compile(r'<document number="(\d+)">(.*?)</document>', re.DOTALL)


class Model:
    """A scripted model that answers from its prompt."""

    def __init__(self, failing: float) -> None:
        self.counts: Counter[str] = Counter()
        self._failing = failing
        self._random = random.Random(7)

    def __call__(self, request: Recorded) -> Any:
        """Return a reply to a chat request."""
        self.counts["asked"] += 1
        if self._random.random() < self._failing:
            name = self._random.choice(list(FAILURES))
            self.counts[name] += 1
            return FAILURES[name]
        return self._reply(request)

    def _reply(self, request: Recorded) -> Any:
        prompt = request.text
        question = _last(prompt, "question")
        if request.body.get("tools") and not _asks_for_json(request):
            return _look_up(request, question)
        if "<history>" in prompt:
            return {"question": _condensed(prompt, question), "smallTalk": False}
        if "<documents>" not in prompt:
            return {"type": "general" if _TOPIC.search(question) else "unknown"}
        return _answer(prompt, question)


def _asks_for_json(request: Recorded) -> bool:
    return "response_format" in request.body


def _look_up(request: Recorded, question: str) -> Reply:
    """Search once, then answer."""
    looked = any(message["role"] == "tool" for message in request.body["messages"])
    topic = _TOPIC.search(question)
    if looked or topic is None:
        return Reply("That is enough.")
    return Reply(tool_calls=[ToolCall("search", {"query": topic[0]})])


def _condensed(prompt: str, question: str) -> str:
    """Return the follow-up with the topic of the previous turn instead of "it"."""
    if _TOPIC.search(question):
        return question
    history = prompt.rpartition("<history>")[2].partition("</history>")[0]
    earlier = _TOPIC.findall(history)
    if not earlier:
        return question
    return question.replace(" it ", f" the {earlier[-1]} ").replace("它", earlier[-1])


def _answer(prompt: str, question: str) -> dict[str, Any]:
    """Return the documents' sentence on the topic and aspect, with the question's nonce."""
    topic = _TOPIC.search(question)
    nonce = NONCE.search(question)
    aspect: Aspect = "timeout" if "time out" in question or "超时" in question else "limit"
    if topic and nonce:
        language = "en" if topic[0].isascii() else "zh"
        pattern = SENTENCES[language, aspect].format(name=re.escape(topic[0]), number=r"\d+")
        for number, text in _DOCUMENT.findall(prompt):
            if found := re.search(pattern, text):
                step = f"{found[0]} ({nonce[0]}). [{number}]"
                return {
                    "question": question,
                    "introduction": "Hello.",
                    "answer": [step],
                    "relatedUrl": [],
                }
    step = f"The documentation does not cover it ({nonce[0] if nonce else 'no reference'})."
    return {"question": question, "introduction": "Hello.", "answer": [step], "relatedUrl": []}


def _last(prompt: str, tag: str) -> str:
    return prompt.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def main() -> None:
    """Serve until the input ends."""
    model = Model(float(sys.argv[1]))
    with ModelServer(default=model) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            # A line arrives per second. Without this, the log of calls would make the memory grow.
            server.requests.clear()
        print(json.dumps(model.counts), flush=True)


if __name__ == "__main__":
    main()
