"""Readers of documentation sources, one per kind of `[[sources]]` in platform.toml."""
