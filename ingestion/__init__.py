"""Ingestion: reads sources, cuts documents into chunks and writes them to a Milvus collection.

`job.py` is the entry point for readers: it runs `sync.py`, which reads `sources/`, cuts documents with
`chunking.py` and writes them through `store/`.
"""
