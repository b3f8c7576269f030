"""The processes that stay: the server and the scheduler."""
