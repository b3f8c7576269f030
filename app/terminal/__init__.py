"""What a person at a terminal sees: answers, progress, reports, from this process or from a server."""
