# Sent to nodes by ranks.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: container
# One JSON list or text a line: entry point, words, id of the image, its digests (none where it was built here).
docker inspect -f '{{json .Config.Entrypoint}}{{println}}{{json .Config.Cmd}}{{println}}{{json .Image}}' "$1" || exit 1
docker image inspect -f '{{json .RepoDigests}}' "$(docker inspect -f '{{.Image}}' "$1")" 2>/dev/null
exit 0

#: process
# The leader's own words: `sh FOLDER/leader.sh FOLDER PROGRAM ...`, a NUL after each; of one that an earlier version has
# started `sh -c TEXT rank FOLDER PRINTER env NAME=VALUE ... PROGRAM ...`.
read -r p s <"$(x "$1")/pid" && exec tr '\0\n' '\n ' <"/proc/$p/cmdline"

#: containers
# A client without a daemon has no containers; a daemon that does not answer may have some of ours.
if command -v docker >/dev/null 2>&1; then
  s="${DOCKER_HOST:-unix:///var/run/docker.sock}"
  ids=$(docker ps -aq --no-trunc --filter label=@LABEL@deployment 2>/dev/null) || {
    if [ -e "${s#unix://}" ]; then echo blind; else echo absent; fi
    grep -qsx dockerd /proc/[0-9]*/comm || echo stopped; }
  [ -z "$ids" ] || docker inspect --format '{{json .}}' $ids 2>/dev/null | sed 's/^/container\t/'
fi
