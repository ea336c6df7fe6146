"""Use cases of `check` and `check --fix`."""
