"""`POST /retrieve` behind FastAPI, for the peers that only retrieve."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.peers.command import App
from benchmarks.peers.task import Question


class RetrievedPassage(BaseModel):
    """A passage of the result."""

    title: str
    url: str
    text: str


class Retrieved(BaseModel):
    """The passages for a question, best first."""

    sources: list[RetrievedPassage]


def retrieval_api(retrieve: Callable[[str], Sequence[RetrievedPassage]]) -> App:
    """Return a service whose responses are the results of `retrieve` for a question."""
    service = FastAPI()

    @service.post("/retrieve")
    def retrieve_passages(asked: Question) -> Retrieved:
        return Retrieved(sources=list(retrieve(asked.question)))

    return service
