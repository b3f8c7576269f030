"""A conversation, as later questions need it."""

from datetime import datetime

from schemas.wire import ApiModel


class Turn(ApiModel):
    """A question that was answered in a session, and what was said."""

    question: str
    """As it was understood: it stands by itself."""
    answer: str
    """The steps, a line each, with their citation marks."""
    api_name: str | None = None
    """The API that it was about."""
    api_url: str | None = None
    asked_at: datetime
    """With its zone."""
