# Sent to nodes by host.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: prelude
# `~` comes from the cluster file and means the ssh user's home on the node, so it is the node that expands it.
# SPARKWRIGHT_SYSROOT lets tests and the demo put fixture trees in place of /proc and /sys.
# A non-interactive ssh session has no sbin on PATH on Debian, where `ip`, `rdma` and `ss` may live.
x() { case "$1" in "~") printf %s "$HOME" ;; "~/"*) printf %s "$HOME/${1#"~/"}" ;; *) printf %s "$1" ;; esac; }
R="${SPARKWRIGHT_SYSROOT:-}"
PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin"

#: show
# `show NAME FILE`: a section of the answer with what the file holds; no process is started for it.
# `at PATH`: where to read what every machine has. Fixture trees hold the hardware, the rest comes from the node itself.
show() { printf '\n@@ %s\n' "$1"; [ -r "$2" ] || return 0
  while IFS= read -r l || [ -n "$l" ]; do printf '%s\n' "$l"; done <"$2"; }
at() { if [ -e "$R$1" ]; then printf %s "$R$1"; else printf %s "$1"; fi; }

#: pid_functions
# `started PID`: field 22 of /proc/PID/stat, nothing for a zombie: it has ended, however late its parent notices.
# `alive FOLDER`: whether the process of FOLDER/pid (`PID START`) runs; its pid in $p. A reused pid is not taken for it.
# Neither starts a program: they are asked many times a second while something is waited for.
born() { since=; { read -r since <"/proc/$1/stat"; } 2>/dev/null; set -- ${since##*) }; [ "${1:-Z}" != Z ] && since="${20}"; }
started() { born "$1" && echo "$since"; }
alive() { [ -s "$1/pid" ] && read -r p s < "$1/pid" && born "$p" && [ "$since" = "$s" ]; }
