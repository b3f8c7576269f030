"""Measures retrieval and answers without a model on the question sets in benchmarks/questions."""
