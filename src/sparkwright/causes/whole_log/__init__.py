"""Causes that only a whole log tells, or several together: hangs, silences, spins."""
