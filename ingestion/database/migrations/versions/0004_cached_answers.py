"""Create `cached_answers`."""

import sqlalchemy as sa
from alembic import op

from ingestion.database.tables import UtcDateTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "cached_answers",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("made_at", UtcDateTime, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("documents", sa.Text, nullable=False),
    )
    op.create_index("ix_cached_answers_made_at", "cached_answers", ["made_at"])
