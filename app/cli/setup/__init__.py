"""Creates a platform.toml and tries it (`apidesk init`), and checks the models (`apidesk check`)."""
