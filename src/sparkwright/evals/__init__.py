"""Are the answers right? Probes, instructions and comparisons: requests out, answers in, no I/O of their own."""
