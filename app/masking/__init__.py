"""Masking of pasted secrets (keys, tokens, personal data) in texts that are stored."""
