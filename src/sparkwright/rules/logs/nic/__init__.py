"""Causes of the family network-interface-selection; codes LNIC."""
