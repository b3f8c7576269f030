"""DELETE /sessions/{session}"""

from litestar import delete
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, ValidationException
from litestar.params import FromPath
from pydantic_core import PydanticCustomError

from app.history import History
from app.routes.fields import check_session
from app.security.keyring import Caller


@delete(
    "/sessions/{session:str}",
    operation_id="deleteSession",
    summary="Forget a session",
    needs="ask",
)
async def delete_session(
    session: FromPath[str], history: NamedDependency[History], caller: NamedDependency[Caller]
) -> None:
    """Delete what was asked and answered in the session. 404 when nothing of it is remembered."""
    try:
        check_session(session)
    except PydanticCustomError as error:  # which Litestar asks of bodies alone
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await history.delete(caller.id, session):
        raise NotFoundException
