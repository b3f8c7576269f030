"""What the text of a question contains: pasted details, identifiers and needs."""
