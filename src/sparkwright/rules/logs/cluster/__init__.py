"""Causes of the family cluster-coordination; codes LCLU."""
