"""Evaluation of retrieval and answers, replay of recorded questions, and the insights report."""
