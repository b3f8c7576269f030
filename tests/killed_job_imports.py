"""What the processes of `killed_job` need; imported once, by the process they are forked from."""

import milvus_lite.db  # type: ignore[import-untyped]
import pymilvus

import ingestion.job
import ingestion.words
import tests.killed_job
import tests.test_sync

ingestion.words.quiet_jieba().initialize()
__all__ = ["ingestion", "milvus_lite", "pymilvus", "tests"]
