"""Documents become a Milvus collection: sources -> sections -> chunks -> collection."""
