"""The steps `research`, `answer` and `ground` over the samples, with the scripted model, for tests."""

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import SecretStr

from app.service.answer_service import AnswerService
from runnables.answer.write_answer import build_answer
from runnables.grounding.grounded_step import GroundingRules
from runnables.grounding.grounding import build_ground
from runnables.models.chat_models import open_chat_models
from runnables.retrieval.evidence import build_boost_named_api
from runnables.retrieval.query_analysis import Glossary
from runnables.retrieval.retriever import ChunkSearch, build_retriever, open_retriever
from runnables.run_context import with_deadline
from runnables.state import Classification, PipelineState, Research
from runnables.tools.lookup_tools import TOOLS, Tool
from runnables.tools.research import build_research
from runnables.tools.tool_context import DocumentLibrary
from schemas.answer import Answer, Round
from schemas.question import Filters, Question, StructuredQuestion
from tests.model_desk import draft
from tests.model_server import Answer as Said
from tests.model_server import ModelServer, Recorded

QUESTION = "订单发货接口的必填参数"
TITLE = re.compile(r'<document number="1">.*?^# (.+?)(?: >|$)', re.DOTALL | re.MULTILINE)


class LookedUp(NamedTuple):
    """What came of a question."""

    evidence: PipelineState
    answer: Answer

    @property
    def researched(self) -> Research:
        """What was done with tools."""
        return self.evidence["research"]

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The calls."""
        return self.researched.rounds

    @property
    def titles(self) -> list[str]:
        """Of the documents in the evidence, in its order."""
        return list(dict.fromkeys(r.chunk.title for r in self.evidence["chunks"]))


class ResearchDesk:
    """Looks up and answers, as the pipeline does, what is understood already."""

    def __init__(
        self, answer_service: AnswerService, server: ModelServer, **overrides: object
    ) -> None:
        scripted = {
            "chat_model": "openai:scripted-chat",
            "chat_base_url": server.base_url,
            "chat_api_key": SecretStr("test-key"),
        }
        models = open_chat_models(answer_service.settings.model_copy(update=scripted | overrides))
        assert models is not None
        self.models = models
        self._answer_service = answer_service
        self._platform_info = answer_service.platform.platform
        retriever = open_retriever(answer_service.settings, answer_service.collection, None)
        glossary = Glossary(answer_service.platform.glossary)
        self._finder = ChunkSearch(retriever, glossary, None)
        self._library = DocumentLibrary(answer_service.collection, self._finder, glossary)

    def ask(
        self,
        question: str = QUESTION,
        *,
        tools: Mapping[str, Tool] = TOOLS,
        rounds: int = 2,
        seconds: float = 10.0,
        in_all: float = 30.0,
        filters: Filters | None = None,
        times: int = 1,
    ) -> LookedUp:
        """What `question` comes to, the last of `times`; `in_all` are the seconds of the request."""
        asked = Question(text=question, k=5, language="zh", filters=filters or Filters())
        collection, platform_info, rules = (
            self._answer_service.collection,
            self._platform_info,
            GroundingRules(),
        )
        research = build_research(
            self.models,
            platform_info,
            self._library,
            build_boost_named_api(collection),
            rounds=rounds,
            seconds=seconds,
            tools=tools,
        )
        written = build_answer(self.models, platform_info, rules) | build_ground(
            platform_info, rules, None
        )

        async def run() -> LookedUp:
            config = with_deadline({}, in_all)
            understood = PipelineState(
                question=asked,
                classification=Classification(StructuredQuestion(type="general")),
                retrieved=await build_retriever(self._finder).ainvoke(asked),
            )
            for _ in range(times):
                evidence = await research.ainvoke(understood, config)
            return LookedUp(evidence, await written.ainvoke(evidence, config))

        return asyncio.run(run())


def has_tools(request: Recorded) -> bool:
    """Whether the model may call tools in its reply."""
    return "tools" in request.body


def tool_texts(request: Recorded) -> list[str]:
    """What tools have told the model."""
    return [m["content"] for m in request.body["messages"] if m["role"] == "tool"]


def writes_answers(server: ModelServer) -> None:
    """The server answers what is asked without tools: by the first chunk's title."""
    server.route(lambda request: not has_tools(request), _by_title)


def _by_title(request: Recorded) -> Said:
    found = TITLE.search(request.text)
    assert found, request.text
    return draft(f"{found[1]}。[1]")
