"""Causes of the family graph-jit-runtime; codes LGRA."""
