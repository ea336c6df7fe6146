"""The gateway's own process: it passes requests to the engine and counts them."""
