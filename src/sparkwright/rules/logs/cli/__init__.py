"""Causes of the family cli-and-config; codes LCLI."""
