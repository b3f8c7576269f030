"""`import apidesk`: the pipeline, the retriever and the tools, as LangChain applications use them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr, ValidationError

import apidesk
from schemas.answer import Answer, Sources, Step
from schemas.errors import ConfigurationError, QuestionError
from schemas.question import Filters, Question, StructuredQuestion
from tests.langsmith_server import langsmith_server
from tests.model_replies import draft, is_classification, structured
from tests.model_script import Reply, ToolCall
from tests.model_server import ModelServer
from tests.reranking import ReversesWithoutScores

pytestmark = pytest.mark.acceptance

QUESTION = "what does error 44203 mean?"


def store(folder: Path) -> dict[str, Any]:
    """Return settings that keep all data in `folder`."""
    return {
        "milvus_uri": str(folder / "milvus.db"),
        "database_url": f"sqlite:///{folder / 'apidesk.db'}",
        "spool": folder / "spool",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[apidesk.Apidesk]:
    with apidesk.open(**store(folder)) as opened:
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        {"question": QUESTION},
        {"question": QUESTION, "k": 3, "filters": {"source": "reference"}},
        Question(text=QUESTION, k=5, language="en"),
    ],
    ids=["text", "dict", "options", "question"],
)
def test_pipeline_accepts_text_dicts_and_questions(
    desk: apidesk.Apidesk, question: str | dict[str, Any] | Question
) -> None:
    for answer in (desk.pipeline.invoke(question), asyncio.run(desk.pipeline.ainvoke(question))):
        assert isinstance(answer, Answer)
        assert "44203" in answer.answer[0]
        assert answer.sources[0].title == "Update SKU Price"
        assert answer.timings["total"] >= 0


def test_question_keeps_its_id(desk: apidesk.Apidesk) -> None:
    question = Question(text=QUESTION, k=2, language="en")
    assert desk.pipeline.invoke(question).id == str(question.id)


def test_options_of_a_dict_take_effect(desk: apidesk.Apidesk) -> None:
    answer = desk.pipeline.invoke({"question": QUESTION, "language": "zh"})
    assert answer.language == "zh"
    filtered = {"question": QUESTION, "filters": {"source": "guides"}}
    assert {source.source for source in desk.pipeline.invoke(filtered).sources} <= {"guides"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"question": "x", "kk": 1}, "kk: Extra inputs are not permitted"),
        ({"text": "x"}, "question: Field required; text: Extra inputs are not permitted"),
        ({"question": 5}, "question: Input should be a valid string"),
        (5, "input: Input should be a valid dictionary or instance of QuestionFields"),
        (
            Question(text=QUESTION, k=1_000, language="en"),
            "k: Input should be less than or equal to 50",
        ),
    ],
)
def test_invalid_input_is_an_error(desk: apidesk.Apidesk, wrong: Any, message: str) -> None:
    with pytest.raises(QuestionError) as error:
        desk.pipeline.invoke(wrong)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": -1}, "k: Input should be greater than or equal to 1"),
        ({"k": 0}, "k: Input should be greater than or equal to 1"),
        ({"k": 1_000}, "k: Input should be less than or equal to 50"),
        ({"k": "5"}, "k: must be a whole number"),
        ({"filters": {"site": "x"}}, "filters.site: Extra inputs are not permitted"),
    ],
)
def test_invalid_options_are_refused_by_all_interfaces(
    desk: apidesk.Apidesk, options: dict[str, Any], message: str
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: desk.ask(QUESTION, **options),
        lambda: asyncio.run(desk.aask(QUESTION, **options)),
        lambda: desk.pipeline.invoke({"question": QUESTION, **options}),
        lambda: desk.retriever.invoke(QUESTION, **options),
        lambda: desk.retriever.model_copy(update=options).invoke(QUESTION),
    ]
    for call in calls:
        with pytest.raises(QuestionError) as error:
            call()
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("question", "options", "field"),
    [
        (None, {}, "question"),
        (5, {}, "question"),
        (" ", {}, "question"),
        (QUESTION, {"language": "xx"}, "language"),
        (QUESTION, {"mode": "foo"}, "mode"),
        (QUESTION, {"session": "a b/../c"}, "session"),
        (QUESTION, {"owner": "me"}, "owner"),
        (QUESTION, {"account": "mine"}, "account"),
        (QUESTION, {"fresh": True}, "fresh"),
    ],
)
def test_ask_accepts_only_the_options_of_rest(
    desk: apidesk.Apidesk, question: Any, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(QuestionError, match=f"^{field}: [^\\n]+$") as error:
        desk.ask(question, **options)
    assert error.value.field == field


def test_blank_question_is_an_error(desk: apidesk.Apidesk) -> None:
    with pytest.raises(QuestionError):
        desk.pipeline.invoke(" ")
    with pytest.raises(QuestionError):
        desk.pipeline.invoke(Question(text=" ", k=5, language="en"))


def test_schemas_describe_what_runs(desk: apidesk.Apidesk) -> None:
    schema = desk.pipeline.get_input_schema()
    assert issubclass(schema, BaseModel)
    schema.model_validate({"question": QUESTION, "k": 3})
    schema.model_validate(QUESTION)
    with pytest.raises(ValidationError):
        schema.model_validate({"text": QUESTION})
    assert desk.pipeline.get_output_schema() is Answer
    assert "QuestionFields" in desk.pipeline.get_input_jsonschema()["$defs"]


def test_batch_keeps_the_order(desk: apidesk.Apidesk) -> None:
    questions = [QUESTION, "how do I ship an order?", "40014 是什么意思？"]
    answers = desk.pipeline.batch(list(questions), {"max_concurrency": 2})
    assert [answer.language for answer in answers] == ["en", "en", "zh"]
    assert "44203" in answers[0].answer[0]


def test_stream_yields_the_answer(desk: apidesk.Apidesk) -> None:
    (answer,) = desk.pipeline.stream(QUESTION)
    assert isinstance(answer, Answer)


class Events(BaseCallbackHandler):
    """Records custom events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append((name, data))


def test_steps_are_dispatched_as_custom_events(desk: apidesk.Apidesk) -> None:
    handler = Events()
    answer = desk.pipeline.invoke(QUESTION, {"callbacks": [handler]})
    assert [name for name, _ in handler.events] == ["structured", "sources", "step"]
    (_, asked), (_, sources), (_, step) = handler.events
    assert isinstance(asked, StructuredQuestion)
    assert asked.error == "44203"
    assert isinstance(sources, Sources)
    assert sources.sources == answer.sources
    assert isinstance(step, Step)
    assert step.text == answer.answer[0]


async def events_of(runnable: Any, question: str) -> list[tuple[str, str]]:
    return [(event["event"], event["name"]) async for event in runnable.astream_events(question)]


@pytest.mark.parametrize("question", [QUESTION, "what is the weather in Paris?", "thanks!"])
def test_events_of_a_chain_contain_the_steps(desk: apidesk.Apidesk, question: str) -> None:
    """Also of refusals, and on an event loop other than that of the desk."""
    chain = desk.pipeline | RunnableLambda(lambda answer: answer.answer)
    received = asyncio.run(events_of(chain, question))
    assert ("on_custom_event", "sources") in received
    assert ("on_custom_event", "step") in received
    assert ("on_chain_end", "RunnableLambda") in received


def test_steps_are_streamed_while_the_model_writes(
    folder: Path, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.reply(structured(), draft("调用“订单发货”接口。[1]", "先取得运单号。[1]"))
    client = ChatOpenAI(
        model="scripted-chat", base_url=model_server.base_url, api_key=SecretStr("key")
    )

    async def received() -> list[tuple[str, str]]:
        async with apidesk.open(model=client, **store(tmp_path)) as desk:
            return await events_of(desk.pipeline, "发货接口是哪个")

    names = asyncio.run(received())
    first_step = names.index(("on_custom_event", "step"))
    assert [name for kind, name in names if kind == "on_custom_event"].count("step") == 2
    assert first_step < names.index(("on_chain_end", "answer"))
    assert model_server.chat_requests[1].body["stream"] is True


def test_unclassified_question_is_dispatched_as_general(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.route(is_classification, Reply("no", status=400))
    model_server.default = draft("调用“订单发货”接口。[1]")
    client = ChatOpenAI(
        model="scripted-chat", base_url=model_server.base_url, api_key=SecretStr("key")
    )
    handler = Events()

    with apidesk.open(model=client, **store(tmp_path)) as desk:
        answer = desk.pipeline.invoke("发货接口是哪个", {"callbacks": [handler]})

    assert answer.degraded == "question_not_classified"
    events = [event for event in handler.events if event[0] in ("structured", "sources", "step")]
    assert [name for name, _ in events] == ["structured", "sources", "step"]
    assert events[0][1] == answer.structured == StructuredQuestion(type="general")


def test_any_chat_model_can_answer(tmp_path: Path) -> None:
    """A model without structured output: its JSON is read from plain text."""
    replies = [structured(), draft("调用“订单发货”接口。[1]")]
    model = GenericFakeChatModel(
        messages=iter([AIMessage(reply.model_dump_json(by_alias=True)) for reply in replies])
    )
    with apidesk.open(model=model, **store(tmp_path)) as desk:
        answer = desk.pipeline.invoke("发货接口是哪个")
    assert answer.answer == ["调用“订单发货”接口。[1]"]
    assert answer.answered_by.startswith("genericfake")
    assert answer.degraded is None


def test_reranker_object_orders_the_chunks(
    folder: Path, desk: apidesk.Apidesk, tmp_path: Path
) -> None:
    query = "ship an order"
    with apidesk.open(reranker=ReversesWithoutScores(), **store(tmp_path)) as reranked:
        assert reranked.retriever.invoke(query, k=3) != desk.retriever.invoke(query, k=3)


def test_retriever_returns_documents(desk: apidesk.Apidesk) -> None:
    documents = desk.retriever.invoke(QUESTION, k=2)
    assert len(documents) == 2
    assert all(isinstance(document, Document) for document in documents)
    assert documents[0].metadata["page_url"] == "https://open.example.com/#/api?apiId=1206"
    assert "44203" in documents[0].page_content
    assert asyncio.run(desk.retriever.ainvoke(QUESTION, k=2)) == documents


def test_retriever_takes_filters_and_can_be_bound(desk: apidesk.Apidesk) -> None:
    guides = desk.retriever.bind(k=3, filters={"source": "guides"})

    def sources(documents: list[Document]) -> list[str]:
        return [document.metadata["source"] for document in documents]

    chain = guides | RunnableLambda(sources)
    assert chain.invoke("how do I sign a request?") == ["guides"] * 3
    other = desk.retriever.model_copy(update={"k": 1, "filters": Filters(source="reference")})
    assert [d.metadata["source"] for d in other.invoke("sign")] == ["reference"]


def test_tools_answer_and_look_up(desk: apidesk.Apidesk) -> None:
    tools = {tool.name: tool for tool in desk.tools}
    assert list(tools) == ["ask", "outline", "search", "open"]
    assert set(tools["search"].args) == {"query", "service", "document", "section"}

    call = {"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
    message = tools["search"].invoke(call)
    assert "44203" in message.content
    assert isinstance(message.artifact[0], Document)

    call = {"name": "ask", "args": {"question": QUESTION}, "id": "2", "type": "tool_call"}
    message = asyncio.run(tools["ask"].ainvoke(call))
    assert "44203" in message.content
    assert message.artifact.confidence == "high"

    call = {"document": "Update SKU Price", "section": "no such section"}
    assert "the document has: Request headers" in tools["open"].invoke(call)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("ask", {"question": ""}, "question: must not be blank"),
        ("ask", {"question": "a", "language": "xx"}, "language: Input should be 'zh' or 'en'"),
        ("outline", {"name": " "}, "name: must not be blank"),
        ("search", {"query": ""}, "query: must not be blank"),
        (
            "search",
            {"query": "a" * 20_001},
            "query: 20001 characters, at most 20000 are allowed",
        ),
        ("open", {}, "document: Field required"),
    ],
)
def test_invalid_input_of_a_tool_returns_an_error_message(
    desk: apidesk.Apidesk, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    (tool,) = (tool for tool in desk.tools if tool.name == name)
    call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
    for message in (tool.invoke(call), asyncio.run(tool.ainvoke(call))):
        assert (message.status, message.content) == ("error", sentence)


def test_failure_of_a_model_is_a_tool_message(model_server: ModelServer, tmp_path: Path) -> None:
    model_server.default = Reply("no", status=401)
    settings = store(tmp_path) | model_server.settings | {"on_model_failure": "error"}
    with apidesk.open(**settings) as desk:
        call = {"name": "ask", "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}
        message = desk.tools[0].invoke(call)
    assert message.status == "error"
    assert "APIDESK_CHAT_API_KEY" in message.content


def test_agent_continues_after_an_invalid_tool_call(
    desk: apidesk.Apidesk, model_server: ModelServer
) -> None:
    blank = [ToolCall("search", {"query": ""}), ToolCall("ask", {"question": " "})]
    model_server.reply(Reply(tool_calls=blank), "done")
    client = ChatOpenAI(
        model="scripted-chat", base_url=model_server.base_url, api_key=SecretStr("key")
    )
    agent = create_agent(client, desk.tools)
    messages = agent.invoke({"messages": [HumanMessage(QUESTION)]})["messages"]
    assert messages[-1].text == "done"
    sent = [m for m in model_server.chat_requests[1].body["messages"] if m["role"] == "tool"]
    assert [message["content"] for message in sent] == [
        "query: must not be blank",
        "question: must not be blank",
    ]


def test_runs_of_the_desk_are_children_of_the_calling_chain(desk: apidesk.Apidesk) -> None:
    """Of the pipeline, the retriever and the tools, each in a synchronous chain."""

    class Parents(BaseCallbackHandler):
        def __init__(self) -> None:
            self.roots: set[str] = set()
            self.runs = 0

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self._add(kwargs)

        def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
            self._add(kwargs)

        def _add(self, kwargs: dict[str, Any]) -> None:
            self.runs += 1
            if kwargs.get("parent_run_id") is None:
                self.roots.add(str(kwargs["run_id"]))

    parents = Parents()
    search = next(tool for tool in desk.tools if tool.name == "search")

    def use_all(text: str) -> object:
        return desk.pipeline.invoke(text), desk.retriever.invoke(text), search.invoke(text)

    RunnableLambda(use_all).invoke(QUESTION, {"callbacks": [parents]})
    assert len(parents.roots) == 1
    assert parents.runs > 5


@pytest.mark.parametrize("content", [True, False])
def test_root_of_the_pipeline_is_traced_like_a_request(tmp_path: Path, content: bool) -> None:
    """Under the id of the answer, and without texts if the settings say so."""
    with langsmith_server(tracing=True) as langsmith:
        with apidesk.open(trace_content=content, **store(tmp_path)) as traced:
            answer = traced.pipeline.invoke(QUESTION)
        root = langsmith.trace(answer.id)
    assert len(langsmith.traces) == 1
    assert root.metadata["answer_id"] == answer.id
    assert (b"44203" in langsmith.sent) == content


def test_ask_continues_a_session(desk: apidesk.Apidesk) -> None:
    desk.ask("how do I cancel a pickup?", session="mine")
    answer = asyncio.run(desk.aask("and which parameters does it need?", session="mine", k=3))
    assert answer.session == "mine"
    assert desk.ask(QUESTION, filters=Filters(source="guides")).session is None


def test_errors_of_the_desk_say_what_to_do(tmp_path: Path) -> None:
    closed = apidesk.open(**store(tmp_path))
    calls: list[Callable[[], object]] = [
        lambda: closed.ask(QUESTION),
        lambda: closed.pipeline,
        lambda: closed.retriever,
        lambda: closed.tools,
    ]

    def check_closed() -> None:
        for call in calls:
            with pytest.raises(RuntimeError, match=r"^apidesk is not open: use it within"):
                call()

    check_closed()

    async def block_own_loop() -> None:
        async with closed as desk:
            assert (await desk.aask(QUESTION)).answer
            assert (await asyncio.to_thread(desk.ask, QUESTION)).answer
            with pytest.raises(RuntimeError, match="use the asynchronous method"):
                desk.ask(QUESTION)

    asyncio.run(block_own_loop())
    check_closed()
    with pytest.raises(apidesk.ApideskError, match="APIDESK_TOP_K"):
        apidesk.open(top_k=0)
    with pytest.raises(apidesk.ApideskError, match=r"missing\.toml"), apidesk.open("missing.toml"):
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topk": 1}, "unknown setting: topk"),
        ({"foo": 1, "bar": 2, "top_k": 3}, "unknown setting: bar, foo"),
        (
            {"model": "openai:gpt-4o"},
            "model: must be a LangChain chat model; pass the name of a model as `chat_model`",
        ),
        (
            {"reranker": 5},
            "reranker: must be a LangChain document compressor; "
            "pass the name of its class as `rerank`",
        ),
    ],
)
def test_invalid_arguments_of_open_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        apidesk.open(**arguments)
    assert str(error.value) == message


def test_unknown_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APIDESK_FOO", "1")
    assert apidesk.open()


def test_desk_can_be_opened_again(tmp_path: Path) -> None:
    desk = apidesk.open(**store(tmp_path))
    with desk:
        earlier = desk.pipeline
        assert earlier.invoke(QUESTION).answer
        assert desk.retriever.invoke(QUESTION)
        assert desk.tools
    with desk:
        assert desk.pipeline.invoke(QUESTION).answer
        assert desk.retriever.invoke(QUESTION)
        search = next(tool for tool in desk.tools if tool.name == "search")
        assert "44203" in search.invoke({"query": QUESTION})
        with pytest.raises(RuntimeError, match="is not open"):
            earlier.invoke(QUESTION)


def test_desk_that_failed_to_open_is_not_open(tmp_path: Path) -> None:
    desk = apidesk.open("missing.toml", **store(tmp_path))

    async def ask_after_failure() -> None:
        with pytest.raises(apidesk.ApideskError, match=r"missing\.toml"):
            await desk.__aenter__()
        with pytest.raises(RuntimeError, match="is not open"):
            await desk.aask(QUESTION)

    asyncio.run(ask_after_failure())


def test_public_names_exist() -> None:
    for name in apidesk.__all__:
        assert getattr(apidesk, name).__doc__
    with pytest.raises(AttributeError):
        apidesk.desks  # type: ignore[attr-defined]  # noqa: B018
