"""Causes of the family container-and-image; codes LIMG."""
