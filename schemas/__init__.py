"""The nouns: what every other floor talks about. Pydantic only, no I/O but the environment."""
