"""The tables of the database, one Alembic revision per file in `versions`."""
