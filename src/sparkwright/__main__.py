"""The console script, and `python -m sparkwright`."""

import os


def run_sparkwright() -> None:
    """Run the command. Ctrl-C while it is still being loaded ends it as silently as later."""
    try:
        from sparkwright.cli.main import run_command_line as command
    except KeyboardInterrupt:
        os.write(2, b"stopped\n")
        os._exit(130)
    command()


entry = run_sparkwright  # console scripts of installed versions call it


if __name__ == "__main__":
    run_sparkwright()
