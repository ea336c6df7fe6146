# Sent to nodes by containers.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: containers
# The parser keeps no word after the first option of a command line: an option's value may be a key. No environment.
command -v docker >/dev/null 2>&1 || { printf '@@ client\nabsent\n'; exit 0; }
printf '@@ client\npresent\n'
f='{"name":{{json .Name}},"image":{{json .Config.Image}},"running":{{json .State.Running}},'
f="$f"'"restart":{{json .HostConfig.RestartPolicy.Name}},"network":{{json .HostConfig.NetworkMode}},'
f="$f"'"runtime":{{json .HostConfig.Runtime}},"devices":{{json .HostConfig.DeviceRequests}},'
f="$f"'"ours":{{json (index .Config.Labels "sparkwright.deployment")}},"path":{{json .Path}},"args":{{json .Args}}}'
inspected() { [ $# -eq 0 ] || LC_ALL=C timeout 8 docker inspect --format "$f" "$@" 2>/dev/null; }
images() {
  [ $# -eq 0 ] || LC_ALL=C timeout 8 docker image inspect \
    --format '{"id":{{json .Id}},"arch":{{json .Architecture}},"tags":{{json .RepoTags}}}' "$@" 2>/dev/null
}
printf '@@ containers\n'
inspected $(LC_ALL=C timeout 8 docker ps -aq 2>/dev/null | head -n "$1")
printf '@@ images\n'
images $(LC_ALL=C timeout 8 docker image ls -q --no-trunc 2>/dev/null | sort -u | head -n "$1")
printf '@@ daemon\n'
grep -sE '"max-size"|nvidia-container-runtime' "$R/etc/docker/daemon.json"
printf '@@ toolkit\n'
if command -v nvidia-ctk >/dev/null 2>&1; then LC_ALL=C timeout 3 nvidia-ctk --version 2>/dev/null; fi
exit 0
