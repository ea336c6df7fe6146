"""An image that sparkwright built, as the node's Docker tells of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import not_understood, sections, whole
from sparkwright.images.provenance import own


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """labels: ours, without prefix. base: id and digests of the image it began with, as far as the node has it.

    packages: `pip freeze` of the image, one `name==version` each; () where it has no Python.
    """

    id: str
    arch: str
    size: int
    labels: Mapping[str, str]
    base: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """For the record on the nodes."""
        return {
            "id": self.id,
            "architecture": self.arch,
            "size": self.size,
            "provenance": dict(self.labels),
            "base": list(self.base),
            "packages": list(self.packages),
        }


def parse(done: Completed) -> BuiltImage | Unknown:
    """Of remote.image.describe."""
    parts = sections(done.stdout)
    size = whole(parts.get("size", ""))
    try:
        name, found = json.loads(parts.get("image", "")), json.loads(parts.get("labels", ""))
    except ValueError:
        return not_understood(done, "docker")
    if not isinstance(name, str) or not isinstance(found, dict) or size is None:
        return not_understood(done, "docker")
    labels = own({str(key): str(value) for key, value in found.items()})
    base, packages = parts.get("base", "").split(), parts.get("packages", "").splitlines()
    return BuiltImage(name, parts.get("arch", ""), size, labels, tuple(base), tuple(packages))
