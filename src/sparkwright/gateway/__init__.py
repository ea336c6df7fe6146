"""The gateway as values: Caddy's configuration, what keys look like, what is answered while the engine is away."""
