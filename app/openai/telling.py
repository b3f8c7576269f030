"""The text of an answer as a chat client gets it, and how it is read when the client sends it back."""

from itertools import chain

from app.markdown import WORDS, heading, lists, paragraphs
from schemas.answer import Answer
from schemas.events import Event, Sources, Step
from schemas.language import Language

WITHDRAWN: dict[Language, str] = {
    "zh": "以上内容已收回，请以下面的回答为准：",
    "en": "What stands above is withdrawn. This is the answer:",
}


class StreamedText:
    """The text of an answer, given out while it is made: what was given cannot be taken back.

    Where the steps begin anew, the rest waits for the answer itself; one that does not go on from what
    was given says that it stands in its place.
    """

    def __init__(self) -> None:
        self.text = ""
        """All that was given out."""
        self._steps: list[str] = []
        self._waits = False

    def hear(self, event: Event) -> str:
        """What is to be given out after `event`."""
        if isinstance(event.data, Sources):
            self._waits = self._waits or bool(self._steps)
        elif isinstance(event.data, Step) and not self._waits:
            self._steps.append(event.data.text)
            return self._given([event.data.text])
        elif isinstance(event.data, Answer):
            return self._given([*self._rest(event.data), *lists(event.data)])
        return ""

    def _rest(self, answer: Answer) -> list[str]:
        count = len(self._steps)
        if answer.answer[:count] == self._steps:
            return answer.answer[count:]
        return ["---", WITHDRAWN[answer.language], *answer.answer]

    def _given(self, texts: list[str]) -> str:
        if not texts:
            return ""
        piece = paragraphs(["", *texts] if self.text else texts)
        self.text += piece
        return piece


def streamed_answer_text(text: str) -> str:
    """What `text`, that a client sends back, says of itself: without lists, and nothing withdrawn."""
    for sentence in WITHDRAWN.values():
        text = text.rpartition(sentence)[2]
    for title in chain.from_iterable(WORDS.values()):
        head, found, tail = text.rpartition(heading(title))
        if found and all(line.startswith("- ") for line in tail.split("\n") if line.strip()):
            text = head
    return text.strip()
