"""A platform's first minutes: what is known of it becomes a platform.toml, which is tried at once."""
