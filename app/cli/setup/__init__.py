"""Creating and trying a platform.toml; checking the models."""
