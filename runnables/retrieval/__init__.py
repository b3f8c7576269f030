"""Retrieval of the ranked chunks for a question."""
