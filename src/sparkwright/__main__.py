"""`python -m sparkwright`."""

from sparkwright.cli.main import entry

entry()
