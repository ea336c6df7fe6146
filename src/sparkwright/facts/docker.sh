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
