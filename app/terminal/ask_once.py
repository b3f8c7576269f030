"""One question from the command line."""

from app.asked import AskCommand, check_question
from app.characters import whole_characters
from app.terminal.terminal_desk import open_terminal_answerer
from runnables.listener import EventSink
from schemas.answer import Answer, Source
from schemas.question import AnswerMode
from schemas.settings import Settings


async def ask_once(
    settings: Settings,
    question: str,
    k: int | None,
    show_retrieved: bool,
    other_model: bool = False,
    mode: AnswerMode = "pipeline",
    listener: EventSink | None = None,
) -> tuple[Answer, list[Source]]:
    """The answer, and the chunks that were retrieved if they are to be shown; `listener` is told how it
    comes about. Raises ApideskError.

    With `other_model` the settings name another model than the server's, which cannot serve then.
    """
    question = whole_characters(question)
    check_question(question, settings)
    asked = AskCommand(question, k=k, mode=mode)
    async with open_terminal_answerer(settings, other_model) as answer_service:
        sources = await answer_service.retrieve(asked) if show_retrieved else []
        return await answer_service.ask(asked, listener), sources
