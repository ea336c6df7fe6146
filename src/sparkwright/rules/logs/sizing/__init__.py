"""Causes of the family memory-sizing; codes LSIZ."""
