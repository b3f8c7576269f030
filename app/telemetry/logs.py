"""Where the log goes and what of it is worth reading."""

import logging

FORMAT = "%(asctime)s %(levelname)-7s %(name)s  %(message)s"

OURS = ("app", "runnables", "ingestion", "uvicorn")

NOISE = ("grpc._server", "milvus_lite.server_manager")
"""Milvus Lite logs as errors, with stacks, a call of its own client that it does not know, and a store
that another process holds; the second comes to the user as our own StoreLocked."""


def configure_logging(level: str) -> None:
    """Log to stderr: our own loggers at `level`, libraries from WARNING on."""
    logging.basicConfig(level=logging.WARNING, format=FORMAT)
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    for name in NOISE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
