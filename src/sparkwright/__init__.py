"""Turns GB10 machines into a model endpoint that people can rely on."""

__version__ = "0.2.0"
