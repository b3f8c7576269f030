"""Grounding: the comparison of an answer with the chunks that it cites."""
