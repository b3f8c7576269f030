"""Readers of documentation sources: one module per kind of `[[sources]]` in platform.toml."""
