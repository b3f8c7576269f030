"""Starts the command line for `apidesk` and `python -m apidesk`.

The entry point must have the same name in a clone and in the wheel. The name of `app.cli.main` differs: the
build of the wheel renames `app` to `apidesk.app`, also in imports.
"""

from app.cli.main import main

if __name__ == "__main__":
    main(prog_name="apidesk")
