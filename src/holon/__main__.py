"""Lets `python -m holon` do what the `holon` command does."""

from holon.cli.main import main

if __name__ == "__main__":
    main()
