"""Evaluation of retrieval, of the question classifier and of answers."""
