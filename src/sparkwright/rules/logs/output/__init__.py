"""Causes of the family output-quality; codes LOUT."""
