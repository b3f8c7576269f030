"""Reports of a server that runs."""

import asyncio

from app.desk import Desk
from app.insights.documentation import documentation_of
from app.insights.insights import report, takes_documentation
from app.records.store import RecordStore
from schemas.insights import Insights, Table


class Reports:
    """One at a time: each takes a processor for some seconds, and a few hundred MB."""

    def __init__(self, records: RecordStore, desk: Desk) -> None:
        self._records = records
        self._documentation = documentation_of(
            desk.platform, desk.collection, desk.job.embeddings, desk.models, desk.settings
        )
        self._making = asyncio.Lock()

    async def make(self, days: int, table: Table | None = None) -> Insights:
        """As `report` makes it, with what `table` takes. Raises StoreUnavailable."""
        documentation = self._documentation if takes_documentation(table) else None
        async with self._making:
            return await report(self._records.since, days, documentation)
