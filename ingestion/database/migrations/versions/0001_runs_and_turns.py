"""Create `ingestion_runs` and `turns`.

Installations from before Alembic already have both tables. Existing tables are not changed.
"""

import sqlalchemy as sa
from alembic import op

from ingestion.database.tables import BIG_ID, UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "ingestion_runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index(
        "ix_ingestion_runs_started_at", "ingestion_runs", ["started_at"], if_not_exists=True
    )
    op.create_table(
        "turns",
        sa.Column("id", BIG_ID, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("api_name", sa.Text),
        sa.Column("api_url", sa.Text),
        if_not_exists=True,
    )
    op.create_index("ix_turns_asked_at", "turns", ["asked_at"], if_not_exists=True)
    op.create_index(
        "turns_of_a_session", "turns", ["owner", "session", "asked_at"], if_not_exists=True
    )
