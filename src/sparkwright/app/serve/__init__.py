"""Use cases of `up`, `down`, `restart` and `switch`: ranks, supervisor and gateway of a deployment."""
