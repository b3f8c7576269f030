"""The store: the collection of chunks with its vocabulary and catalogue."""
