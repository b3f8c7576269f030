"""The text of an answer as a chat client receives it, and how it is read back from the history."""

from itertools import chain

from app.api.markdown import join_paragraphs, link_lists, list_heading
from app.service.streamed_answer import StreamedAnswer
from prompts.user_text import all_user_texts, user_text
from schemas.answer import Answer, Event, Step


class StreamedText:
    """Turns the events of an answer into text; text that was sent cannot be taken back.

    If the steps are restarted, the rest of the text follows with the final answer. A final answer that
    does not continue the text sent so far is introduced by a correction notice.
    """

    def __init__(self) -> None:
        self.text = ""
        """The text sent so far."""
        self._streamed = StreamedAnswer()
        self._sent_steps: list[str] = []

    def add(self, event: Event) -> str:
        """Return the text to send after `event`; empty if there is none."""
        self._streamed.apply(event)
        if isinstance(event.data, Step) and not self._streamed.is_restarted:
            self._sent_steps.append(event.data.text)
            return self._send([event.data.text])
        if isinstance(event.data, Answer):
            return self._send([*self._unsent_steps(event.data), *link_lists(event.data)])
        return ""

    def _unsent_steps(self, answer: Answer) -> list[str]:
        count = len(self._sent_steps)
        if answer.answer[:count] == self._sent_steps:
            return answer.answer[count:]
        return ["---", user_text(answer.language).answer.correction_notice, *answer.answer]

    def _send(self, paragraphs: list[str]) -> str:
        if not paragraphs:
            return ""
        text = join_paragraphs(["", *paragraphs] if self.text else paragraphs)
        self.text += text
        return text


def parse_answer_text(text: str) -> str:
    """Return the steps in a text that a client sends back, without link lists and corrected text."""
    labels = [texts.answer for texts in all_user_texts()]
    for label in labels:
        text = text.rpartition(label.correction_notice)[2]
    for title in chain.from_iterable((label.sources, label.nearest) for label in labels):
        head, heading, tail = text.rpartition(list_heading(title))
        if heading and all(line.startswith("- ") for line in tail.split("\n") if line.strip()):
            text = head
    return text.strip()
