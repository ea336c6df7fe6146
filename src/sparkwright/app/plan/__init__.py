"""Use cases of `plan`: what would run where, and whether it fits."""
