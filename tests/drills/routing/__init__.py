"""What a proxy that routes by model costs: candidates before an engine of known times, in turns, in one run."""
