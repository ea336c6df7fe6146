# Sent to nodes by engine_options.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: ask
# PROGRAM runs in the first Python that has the package: the venv's, the one of the engine's own program, then PATH's.
# An image may have a shell and Python, and no other tool.
own="$1"; program="$2"; engine="$3"; package="$4"
first=; p=$(command -v "$program" 2>/dev/null) && IFS= read -r first <"$p" 2>/dev/null
case "$first" in '#!'*python*) first=${first#??}; first=${first%% *} ;; *) first= ;; esac
for python in "$own" "$first" python3 python; do
  [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
  "$python" -c 'import sys; from importlib import util; sys.exit(not util.find_spec(sys.argv[1]))' "$package" \
    2>/dev/null || continue
  printf '@@ answer\n'; "$python" -c "$PROGRAM" "$engine"; printf '\n@@ end\n'
  break
done

#: help
# A program of its own, no Python package: its help text, and the digest of its file.
p=$(command -v "$2") || exit 0
printf '@@ build\n'; sha256sum <"$p" 2>/dev/null | cut -c 1-64
h=$("$p" --help) && [ -n "$h" ] && printf '@@ help\n%s\n@@ end\n' "$h"

#: node
# What it says on stderr comes after the answer, whose size is bounded here.
e=$(mktemp) || exit 1; trap 'rm -f "$e"' EXIT
asked() { ask "$@" 2>"$e" | head -c 3000000; printf '\n@@ said\n'; tail -c 2000 "$e"; }

#: image
# Without network, and gone afterwards, whatever becomes of this call.
i=$(docker image inspect --format '{{.Id}}' "$1" 2>/dev/null ||
  { [ -n "$2" ] && docker image inspect --format '{{.Id}}' "$2" 2>/dev/null; }) || exit 0
g="$3"; text="$4"; shift 4; name="sparkwright-options-$$"
trap 'rm -f "$e"; docker rm -f "$name" >/dev/null 2>&1' EXIT
ask() { docker run --rm --name "$name" --network none --pids-limit 4096 $g --env "PROGRAM=$PROGRAM" --entrypoint sh \
  "$i" -c "$text" sh "$@"; }
printf '@@ image\n%s\n' "$i"
out=$(asked "$@")
case "$out" in *"@@ end"*) ;; *) [ -z "$g" ] || { g=; out=$(asked "$@"); } ;; esac
printf '%s\n' "$out"
