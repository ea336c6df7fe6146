"""Causes of the family api-and-client; codes LAPI."""
