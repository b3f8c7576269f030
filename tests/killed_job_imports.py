"""Imports the modules that `killed_job` needs, in the process from which the others are forked."""

import milvus_lite.db  # type: ignore[import-untyped]
import pymilvus
import rjieba

import ingestion.job
import ingestion.text.words
import tests.killed_job
import tests.sync_harness

__all__ = ["ingestion", "milvus_lite", "pymilvus", "rjieba", "tests"]
