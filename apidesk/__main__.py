"""Starts the command line for `apidesk` and `python -m apidesk`.

This is a separate module because `app` is called `apidesk.app` in the wheel. This module has the same name
in a clone and in the wheel.
"""

from app.cli.main import main

if __name__ == "__main__":
    main(prog_name="apidesk")
