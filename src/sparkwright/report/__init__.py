"""Runs as text, series and one-file HTML."""
