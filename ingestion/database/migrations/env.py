"""Alembic's environment: runs the migrations on the given connection, inside its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
