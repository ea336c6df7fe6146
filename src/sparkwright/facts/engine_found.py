"""What an image, or a node's Python, has of an engine: read from what its packages say of themselves."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.facts.fact import not_understood, sections

# `version: 11549 (0f1e2d3)` of llama-server and its kin.
_VERSION = re.compile(r"^version: (\d+)\b", re.MULTILINE)
_ROW = re.compile(r"([A-Za-z0-9_.-]+) (\S+)")


def parse(done: Completed) -> EngineFound | Unknown | None:
    """Of remote.image.engine_of_image and its kin; None when there is no image, or nothing is known of it yet."""
    parts = sections(done.stdout)
    if done.ok and not parts:
        return None
    if "end" not in parts:
        return not_understood(done, "docker")
    rows = [match for line in parts.get("found", "").splitlines() if (match := _ROW.fullmatch(line))]
    versions = {row[1]: row[2] for row in rows if row[1] != "program"}
    program = next((row[2] for row in rows if row[1] == "program"), "")
    if said := _VERSION.search(parts.get("said", "")):
        versions[program.rpartition("/")[2]] = said[1]
    return EngineFound(parts.get("arch", ""), versions, program)
