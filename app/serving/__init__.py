"""The long-running processes: the server, its workers and the scheduler."""
