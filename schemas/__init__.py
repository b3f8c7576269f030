"""Data models that all packages use. Only `settings` reads the environment."""
