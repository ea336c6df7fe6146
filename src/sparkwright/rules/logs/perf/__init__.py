"""Causes of the family performance; codes LPRF."""
