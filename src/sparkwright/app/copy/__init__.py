"""Use cases of copies: models and images come to the nodes."""
