"""What Alembic runs: the versions, on the connection that it is given, inside its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
