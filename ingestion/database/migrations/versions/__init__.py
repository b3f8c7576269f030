"""One file a version; Alembic finds them by what they call `revision`."""
