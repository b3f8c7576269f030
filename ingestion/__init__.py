"""Ingestion: reads sources, splits documents into chunks and writes the chunks to a collection.

Start reading at `job.py`. It runs `sync.py`, which reads documents with `sources/`, splits them with
`chunking.py` and writes the chunks with `store/`.
"""
