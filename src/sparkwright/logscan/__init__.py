"""Reads logs: one pass, the patterns that are in it, marks and times. Knows no cause."""
