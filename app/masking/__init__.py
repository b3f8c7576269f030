"""Masking of keys, tokens, personal data and other secrets in texts before they are stored."""
