"""Alembic migrations of the database, one file per revision in `versions`."""
