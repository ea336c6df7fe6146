"""The console script, and `python -m sparkwright`."""

import os


def entry() -> None:
    """Run the command. Ctrl-C while it is still being loaded ends it as silently as later."""
    try:
        from sparkwright.cli.main import entry as command
    except KeyboardInterrupt:
        os.write(2, b"stopped\n")
        os._exit(130)
    command()


if __name__ == "__main__":
    entry()
