"""What a rank was started with, without anything secret."""

import json
import re
from collections.abc import Sequence

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.probed import Launched
from sparkwright.facts.fact import not_understood
from sparkwright.remote.host import script

# One JSON list or text a line: entry point, words, id of the image, its digests (none where it was built here).
_CONTAINER = r"""
docker inspect -f '{{json .Config.Entrypoint}}{{println}}{{json .Config.Cmd}}{{println}}{{json .Image}}' "$1" || exit 1
docker image inspect -f '{{json .RepoDigests}}' "$(docker inspect -f '{{.Image}}' "$1")" 2>/dev/null
exit 0
"""
# The leader's own words: `sh -c TEXT rank FOLDER PRINTER env NAME=VALUE ... PROGRAM ...`, a NUL after each.
_PROCESS = r"""
read -r p s <"$(x "$1")/pid" && exec tr '\0\n' '\n ' <"/proc/$p/cmdline"
"""


def of_container(name: str) -> Command:
    return script(_CONTAINER, name)


def of_process(directory: str) -> Command:
    """A word a line."""
    return script(_PROCESS, directory)


_SECRET = re.compile(r"(?i)(^--?[\w.-]*(?:api-?key|token|password|secret)s?)(=.*)?$")
_MASK = "***"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_BEFORE = 6  # sh -c TEXT rank FOLDER PRINTER


def parse_container(done: Completed) -> Launched | Unknown:
    try:
        entry, words, image, *digests = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        named = [str(one) for one in (digests[0] if digests else None) or ()]
        return Launched(masked([*(entry or ()), *(words or ())]), named[0] if named else str(image))
    except (ValueError, TypeError):
        return not_understood(done, "docker inspect")


def parse_process(done: Completed) -> Launched | Unknown:
    words = done.stdout.removesuffix("\n").split("\n")[_BEFORE:]
    if words[:1] == ["env"]:
        words = words[1:]
        while words and _VARIABLE.fullmatch(words[0]):
            words = words[1:]
    return Launched(masked(words)) if words else not_understood(done, "/proc/PID/cmdline")


def masked(words: Sequence[str]) -> tuple[str, ...]:
    """Values of options whose name says that they are secret are not kept, `--hf-token X` and `--api-key=X` alike."""
    kept, hide = [], False
    for word in words:
        found = _SECRET.match(word)
        kept.append(f"{found[1]}={_MASK}" if found and found[2] else _MASK if hide else word)
        hide = bool(found and not found[2])
    return tuple(kept)
