"""Builds the way of runs to files and back. Apart from the other wiring: only it needs numpy."""

from sparkwright.adapters.run_files.formats import DiskRunFiles


def run_files() -> DiskRunFiles:
    """The way of runs to files and back."""
    return DiskRunFiles()
