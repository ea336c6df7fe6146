"""Causes of the family unified-memory-host; codes LUMA."""
