"""Runs the steps `research`, `answer` and `ground` over the samples with the scripted model."""

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

from app.service.answer_service import AnswerService
from runnables.answer.ground_answer import build_ground
from runnables.answer.write_answer import build_write_answer
from runnables.grounding.grounded_step import GroundingRules
from runnables.models.chat_models import open_chat_models
from runnables.question.query_analysis import Glossary
from runnables.retrieval.chunk_search import ChunkSearch, RetrieveStep, build_boost_named_api
from runnables.retrieval.retriever import open_search
from runnables.run_context import with_deadline
from runnables.state import Classification, PipelineState, Research
from runnables.tools.lookup_tools import TOOLS, LookupTool
from runnables.tools.research import build_research
from runnables.tools.tool_context import DocumentLibrary
from schemas.answer import Answer, Round
from schemas.question import Filters, Question, StructuredQuestion
from tests.model_replies import draft
from tests.model_script import Answer as Said
from tests.model_script import Recorded
from tests.model_server import ModelServer

QUESTION = "订单发货接口的必填参数"
TITLE = re.compile(r'<document number="1">.*?^# (.+?)(?: >|$)', re.DOTALL | re.MULTILINE)


class ResearchRun(NamedTuple):
    """The result of one question."""

    state: PipelineState
    answer: Answer

    @property
    def research(self) -> Research:
        """The result of the step `research`."""
        return self.state["research"]

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The tool calls."""
        return self.research.rounds

    @property
    def titles(self) -> list[str]:
        """Titles of the documents that the answer may cite, in order."""
        return list(dict.fromkeys(r.chunk.title for r in self.state["chunks"]))


class ResearchSteps:
    """Runs the steps as in mode `tools` of the pipeline, for a question that is already classified."""

    def __init__(
        self, answer_service: AnswerService, server: ModelServer, **overrides: object
    ) -> None:
        models = open_chat_models(
            answer_service.settings.model_copy(update=server.settings | overrides)
        )
        assert models is not None
        self.models = models
        self._collection = answer_service.collection
        self._platform_info = answer_service.platform.platform
        search = open_search(answer_service.settings.retrieval, answer_service.collection, None)
        glossary = Glossary(answer_service.platform.glossary)
        self._search = ChunkSearch(search=search, glossary=glossary)
        self._library = DocumentLibrary(answer_service.collection, self._search, glossary)

    def ask(
        self,
        text: str = QUESTION,
        *,
        tools: Mapping[str, LookupTool] = TOOLS,
        rounds: int = 2,
        round_timeout_s: float = 10.0,
        timeout_s: float = 30.0,
        filters: Filters | None = None,
        times: int = 1,
    ) -> ResearchRun:
        """Ask `text` as many times as `times` says, and return the last result.

        `timeout_s` is the time limit of a whole request.
        """
        question = Question(text=text, k=5, language="zh", filters=filters or Filters())
        rules = GroundingRules()
        research = build_boost_named_api(self._collection) | build_research(
            self.models,
            self._platform_info,
            self._library,
            rounds=rounds,
            round_timeout_s=round_timeout_s,
            tools=tools,
        )
        write = build_write_answer(self.models, self._platform_info, rules)
        answer = write | build_ground(self._platform_info, rules, None)

        async def run() -> ResearchRun:
            config = with_deadline({}, timeout_s)
            classified = PipelineState(
                question=question,
                classification=Classification(StructuredQuestion(type="general")),
                retrieved=await RetrieveStep(self._search).ainvoke(question),
                further=[],
            )
            for _ in range(times):
                state = await research.ainvoke(classified, config)
            return ResearchRun(state, await answer.ainvoke(state, config))

        return asyncio.run(run())


def has_tools(request: Recorded) -> bool:
    """Return whether the model may call tools in its reply."""
    return "tools" in request.body


def tool_texts(request: Recorded) -> list[str]:
    """Return the results of tools in the request."""
    return [m["content"] for m in request.body["messages"] if m["role"] == "tool"]


def write_answers(server: ModelServer) -> None:
    """Script the replies to requests without tools: the title of the first chunk."""
    server.route(lambda request: not has_tools(request), _title_answer)


def _title_answer(request: Recorded) -> Said:
    title = TITLE.search(request.text)
    assert title, request.text
    return draft(f"{title[1]}。[1]")
