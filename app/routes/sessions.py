"""DELETE /sessions/{session}"""

from litestar import delete
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, ValidationException
from litestar.params import FromPath
from pydantic_core import PydanticCustomError

from app.history import History
from app.routes.fields import check_session

NOBODY = ""
"""The owner of sessions while there are no API keys."""


@delete("/sessions/{session:str}", operation_id="deleteSession", summary="Forget a session")
async def delete_session(session: FromPath[str], history: NamedDependency[History]) -> None:
    """Delete what was asked and answered in the session. 404 when nothing of it is remembered."""
    try:
        check_session(session)
    except PydanticCustomError as error:  # which Litestar asks of bodies alone
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await history.delete(NOBODY, session):
        raise NotFoundException
