"""Evidence in memory."""


class FakeArtifacts:
    """`save` saves evidence. saved: (deployment, name) -> text."""

    def __init__(self) -> None:
        self.saved: dict[tuple[str, str], str] = {}

    def save(self, deployment: str, name: str, text: str) -> str:
        self.saved[deployment, name] = text
        return f"/evidence/{deployment}/{name}"
