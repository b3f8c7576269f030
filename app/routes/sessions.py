"""DELETE /sessions/{session}"""

from typing import Annotated

from litestar import delete
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, ValidationException
from litestar.params import PathParameter
from pydantic_core import PydanticCustomError

from app.description.tags import QUESTIONS
from app.history import SessionStore
from app.routes.fields import SESSION, check_session
from app.security.keyring import Caller
from schemas.errors import StoreUnavailable


@delete(
    "/sessions/{session:str}",
    operation_id="deleteSession",
    summary="Forget a session",
    response_description="It is forgotten",
    tags=[QUESTIONS],
    needs="ask",
    errors=(StoreUnavailable,),
)
async def delete_session(
    session: Annotated[str, PathParameter(schema_extra=SESSION)],
    history: NamedDependency[SessionStore],
    caller: NamedDependency[Caller],
) -> None:
    """Delete what was asked and answered in the session. 404 when nothing of it is remembered."""
    try:
        check_session(session)
    except PydanticCustomError as error:  # which Litestar asks of bodies alone
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await history.delete(caller.id, session):
        raise NotFoundException
