"""Evaluation of retrieval and of the question classifier."""
