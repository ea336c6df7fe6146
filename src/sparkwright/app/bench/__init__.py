"""Measuring an endpoint: what it is, what is asked of it, and every answer kept."""
