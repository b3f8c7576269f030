"""Migrations, one file per revision. Alembic finds them by their `revision`."""
