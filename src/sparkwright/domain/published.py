"""What a hub says of a model that no node has yet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """config: the text of its config.json, '' without one. weights: bytes of what engines load, 0 when not told."""

    model: str
    revision: str
    config: str = ""
    weights: int = 0
