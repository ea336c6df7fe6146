# Sent to nodes by docker.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: info
# `docker info` tells no rights, no socket and no daemon apart by its wording only, which changes between versions:
# the socket itself is looked at. The client says where it is (DOCKER_HOST, contexts, rootless).
# A daemon that may not raise limits refuses `--ulimit memlock=-1`; its /proc tells, and is readable for everybody.
at() { if [ -e "$R$1" ]; then printf %s "$R$1"; else printf %s "$1"; fi; }
is_dockerd() { n=; { read -r n <"$R/proc/$1/comm" || read -r n <"/proc/$1/comm"; } 2>/dev/null; [ "$n" = dockerd ]; }
daemon() {
  p=; { read -r p <"$(at /var/run/docker.pid)"; } 2>/dev/null
  if [ -z "$p" ] || ! is_dockerd "$p"; then
    p=; for c in /proc/[0-9]*; do if is_dockerd "${c#/proc/}"; then p="${c#/proc/}"; break; fi; done
  fi
  [ -n "$p" ] || return 0
  { grep '^CapEff:' "$(at "/proc/$p/status")"; grep '^Max locked memory' "$(at "/proc/$p/limits")"
    cat "$(at "/proc/$p/uid_map")"; } 2>/dev/null
}
if ! command -v docker >/dev/null 2>&1; then printf '@@ client\nabsent\n'; exit 0; fi
printf '@@ client\npresent\n'
out=$(LC_ALL=C docker info --format '{{json .}}')
printf '@@ info\n%s\n' "$out"
printf '@@ cdi\n'
grep -ls 'nvidia.com/gpu' "$R"/etc/cdi/* "$R"/var/run/cdi/*
printf '@@ daemon\n'
daemon
case "$out" in *'"ServerVersion":"'[!\"]*) exit 0 ;; esac
at=$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null) || at="${DOCKER_HOST:-}"
case "${at:-unix:///var/run/docker.sock}" in
  unix://*) s="${at#unix://}"; s="${s:-/var/run/docker.sock}" ;;
  *) printf '@@ socket\nremote\n'; exit 0 ;;
esac
if [ ! -e "$s" ]; then s=absent; elif [ -w "$s" ]; then s=writable; else s='not writable'; fi
printf '@@ socket\n%s\n' "$s"
exit 0

#: containers
# The parser keeps no word after the first option of a command line: an option's value may be a key. No environment.
command -v docker >/dev/null 2>&1 || { printf '@@ client\nabsent\n'; exit 0; }
printf '@@ client\npresent\n'
f='{"id":{{json .Id}},"name":{{json .Name}},"image":{{json .Config.Image}},"running":{{json .State.Running}},'
f="$f"'"restart":{{json .HostConfig.RestartPolicy.Name}},"network":{{json .HostConfig.NetworkMode}},'
f="$f"'"runtime":{{json .HostConfig.Runtime}},"devices":{{json .HostConfig.DeviceRequests}},'
f="$f"'"project":{{json (index .Config.Labels "com.docker.compose.project")}},'
f="$f"'"ours":{{json (index .Config.Labels "sparkwright.deployment")}},"path":{{json .Path}},"args":{{json .Args}}}'
inspected() { [ $# -eq 0 ] || LC_ALL=C timeout 8 docker inspect --format "$f" "$@" 2>/dev/null; }
images() {
  [ $# -eq 0 ] || LC_ALL=C timeout 8 docker image inspect \
    --format '{"id":{{json .Id}},"arch":{{json .Architecture}},"tags":{{json .RepoTags}}}' "$@" 2>/dev/null
}
printf '@@ containers\n'
inspected $(LC_ALL=C timeout 8 docker ps -aq 2>/dev/null | head -n "$1")
# sparkrun starts containers that sleep, and engines inside them: the processes say what is served. Of their command
# lines the model's name alone is sent.
m='(serve|--model|--model-path|--hf-repo|-hf)[ =][A-Za-z0-9/._:@-]+'
served() { LC_ALL=C timeout 3 docker top "$1" -eo pid,args 2>/dev/null | grep -oE -e "$m" | head -n 4 | tr '\n' ' '; }
printf '@@ processes\n'
for c in $(LC_ALL=C timeout 8 docker ps -q --filter name=sparkrun_ 2>/dev/null | head -n 8); do
  printf '%s %s\n' "$c" "$(served "$c")"
done
printf '@@ images\n'
images $(LC_ALL=C timeout 8 docker image ls -q --no-trunc 2>/dev/null | sort -u | head -n "$1")
printf '@@ daemon\n'
grep -sE '"max-size"|nvidia-container-runtime' "$R/etc/docker/daemon.json"
printf '@@ toolkit\n'
if command -v nvidia-ctk >/dev/null 2>&1; then LC_ALL=C timeout 3 nvidia-ctk --version 2>/dev/null; fi
exit 0
