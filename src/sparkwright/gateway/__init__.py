"""The gateway as values: what Caddy is told, what keys look like, what is answered while the engine is away."""
