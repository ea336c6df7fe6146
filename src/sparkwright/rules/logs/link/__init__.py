"""Causes of the family network-reachability-and-link; codes LLNK."""
