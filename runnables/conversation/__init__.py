"""Small talk, and follow-ups that become standalone questions."""
