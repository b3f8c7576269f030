"""Secrets that developers paste are taken out of texts that are kept: keys, tokens, people's numbers."""
