"""A graph for LangGraph Studio: each question of the chat is answered by apidesk."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

import apidesk

desk = apidesk.open().__enter__()  # open as long as the server runs


async def answer(state: MessagesState) -> MessagesState:
    result = await desk.pipeline.ainvoke(state["messages"][-1].text)
    return {"messages": [AIMessage("\n\n".join(result.answer))]}


graph = (
    StateGraph(MessagesState)
    .add_node(answer)
    .add_edge(START, "answer")
    .add_edge("answer", END)
    .compile()
)
