"""Create `questions`."""

import sqlalchemy as sa
from alembic import op

from ingestion.database.tables import UtcDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "questions",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("score", sa.SmallInteger),
        sa.Column("comment", sa.Text),
    )
    op.create_index("ix_questions_asked_at", "questions", ["asked_at"])
