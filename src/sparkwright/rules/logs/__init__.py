"""Causes that logs tell, by family: one file a cause."""
