"""The HTTP service and the command line. Uses `runnables`, `ingestion`, `prompts` and `schemas`."""
