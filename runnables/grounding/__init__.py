"""Grounding: compare an answer with the chunks that it cites."""
