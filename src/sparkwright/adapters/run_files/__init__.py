"""Runs as files: ours, and those of other tools."""
