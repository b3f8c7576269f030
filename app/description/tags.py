"""What the routes are grouped by in the OpenAPI document."""

from litestar.openapi.spec import Tag

QUESTIONS = "questions"
DOCUMENTS = "documents"
OPERATING = "operating"

TAGS = [
    Tag(QUESTIONS, "Ask, look up, judge, forget."),
    Tag(DOCUMENTS, "Index what changed."),
    Tag(OPERATING, "Whether it works, and how well."),
]
