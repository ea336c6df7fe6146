"""What a rank was really started with, from the container or the process itself."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

# One JSON list or text a line: entry point, words, id of the image, its digests (none where it was built here).
_CONTAINER = r"""
docker inspect -f '{{json .Config.Entrypoint}}{{println}}{{json .Config.Cmd}}{{println}}{{json .Image}}' "$1" || exit 1
docker image inspect -f '{{json .RepoDigests}}' "$(docker inspect -f '{{.Image}}' "$1")" 2>/dev/null
exit 0
"""
# The leader's own words: `sh -c TEXT rank FOLDER env NAME=VALUE ... PROGRAM ...`, a NUL after each.
_PROCESS = r"""
read -r p s <"$(x "$1")/pid" && exec tr '\0\n' '\n ' <"/proc/$p/cmdline"
"""


def of_container(name: str) -> Command:
    return script(_CONTAINER, name)


def of_process(directory: str) -> Command:
    """A word a line."""
    return script(_PROCESS, directory)
