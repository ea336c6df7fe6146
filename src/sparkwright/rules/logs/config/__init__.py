"""Causes of the family model-config; codes LCFG."""
