"""Causes of the family benign; codes LBEN."""
