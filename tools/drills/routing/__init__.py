"""The cost of a proxy that routes by model: candidates before an engine of known times, in turns, in one run."""
