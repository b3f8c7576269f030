"""Ingestion: reads sources, splits documents into chunks and writes the chunks to a collection.

Start reading at `job.py`. It runs `sync.py`, which reads each source with `source_reading.py` and writes
the changed chunks with `store/`. The readers are in `sources/`; `chunking.py` splits the documents.
"""
