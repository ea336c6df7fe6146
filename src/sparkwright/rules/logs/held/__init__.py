"""Causes of the family memory-held-or-leaked; codes LHEL."""
