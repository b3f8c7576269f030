"""Starts the command line for `apidesk` and `python -m apidesk`.

The entry point must have the same name in a clone and in the wheel. It therefore cannot be `app.cli.main`,
which is `apidesk.app.cli.main` in the wheel.
"""

from app.cli.main import main

if __name__ == "__main__":
    main(prog_name="apidesk")
