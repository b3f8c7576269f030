"""Reports of a server that runs."""

import asyncio

from app.answer_service import AnswerService
from app.insights.documentation import documentation_of
from app.insights.insights import report, takes_documentation
from app.records.store import RecordStore
from schemas.insights import Insights, Table


class InsightsReports:
    """One at a time: each takes a processor for some seconds, and a few hundred MB."""

    def __init__(self, records: RecordStore, answer_service: AnswerService) -> None:
        self._records = records
        self._documentation = documentation_of(
            answer_service.platform,
            answer_service.collection,
            answer_service.job.embeddings,
            answer_service.models,
            answer_service.settings,
        )
        self._making = asyncio.Lock()

    async def make(self, days: int, table: Table | None = None) -> Insights:
        """As `report` makes it, with what `table` takes. Raises StoreUnavailable."""
        documentation = self._documentation if takes_documentation(table) else None
        async with self._making:
            return await report(self._records.since, days, documentation)
