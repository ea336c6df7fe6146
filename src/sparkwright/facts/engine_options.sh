# Sent to nodes by engine_options.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: ask
# PROGRAM runs in the first Python that has the package: the venv's, the one of the engine's own program, then PATH's.
own="$1"; program="$2"; engine="$3"; package="$4"
first=; p=$(command -v "$program" 2>/dev/null) && IFS= read -r first <"$p" 2>/dev/null
case "$first" in '#!'*python*) first=${first#??}; first=${first%% *} ;; *) first= ;; esac
e=$(mktemp) || exit 1
for python in "$own" "$first" python3 python; do
  [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
  "$python" -c 'import sys; from importlib import util; sys.exit(not util.find_spec(sys.argv[1]))' "$package" \
    2>/dev/null || continue
  printf '@@ answer\n'; timeout 300 "$python" -c "$PROGRAM" "$engine" 2>"$e" | tail -n 1 | head -c 3000000
  printf '\n@@ said\n'; tail -c 2000 "$e"; printf '\n@@ end\n'
  break
done
rm -f "$e"

#: help
# A program of its own, no Python package: its help text, and the digest of its file.
p=$(command -v "$2") || exit 0
printf '@@ build\n'; sha256sum <"$p" | cut -c 1-64
printf '@@ help\n'; timeout 60 "$p" --help 2>/dev/null | head -c 1000000; printf '\n@@ said\n\n@@ end\n'

#: image
# `--rm` and a time limit inside: whatever becomes of this call, no container is left behind.
i=$(docker image inspect --format '{{.Id}}' "$1" 2>/dev/null ||
  { [ -n "$2" ] && docker image inspect --format '{{.Id}}' "$2" 2>/dev/null; }) || exit 0
g="$3"; ask="$4"; shift 4
look() { g="$1"; shift
  docker run --rm --network none --pids-limit 4096 $g --env "PROGRAM=$PROGRAM" --entrypoint sh "$i" -c "$ask" sh "$@"; }
printf '@@ image\n%s\n' "$i"
if [ -z "$g" ] || ! look "$g" "$@"; then look "" "$@"; fi
exit 0
