"""Create `api_keys`."""

import sqlalchemy as sa
from alembic import op

from ingestion.database.tables import UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(12), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("revoked_at", UtcDateTime),
        sa.Column("last_used_at", UtcDateTime),
    )
