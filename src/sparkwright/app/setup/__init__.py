"""Use cases of `init`, `connect` and `keys`."""
