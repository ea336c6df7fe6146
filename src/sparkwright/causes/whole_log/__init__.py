"""Causes that only a whole log shows, or several together: hangs, silences, spins."""
