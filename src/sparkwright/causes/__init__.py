"""Causes that logs show: one TOML file a family, read strictly, and how what was found is ranked."""
