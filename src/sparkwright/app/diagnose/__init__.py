"""Use cases of `diagnose`, and of incidents."""
