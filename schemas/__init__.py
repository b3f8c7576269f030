"""Data models that all packages use. They depend on pydantic only; only Settings reads the environment."""
