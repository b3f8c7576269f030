"""Drafts an answer from chunks: by a model, by quoting, or with a fixed text."""
