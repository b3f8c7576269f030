"""The processes that stay: the server, its workers, the scheduler."""
