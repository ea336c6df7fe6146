"""Causes of the family version-skew; codes LVER."""
