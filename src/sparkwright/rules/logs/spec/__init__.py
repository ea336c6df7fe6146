"""Causes of the family spec-decode; codes LSPC."""
