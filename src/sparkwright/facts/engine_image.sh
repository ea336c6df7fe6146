# Sent to nodes by engine_image.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: ask
own="$1"; program="$2"; shift 2
first=; p=$(command -v "$program" 2>/dev/null) && IFS= read -r first <"$p" 2>/dev/null
case "$first" in '#!'*python*) first=${first#??}; first=${first%% *} ;; *) first= ;; esac
for python in "$own" "$first" python3 python; do
  [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
  found=$("$python" -c "$VERSIONS" "$@" 2>/dev/null) && [ -n "$found" ] || continue
  printf '%s\n' "$found"; break
done
[ -z "$p" ] || printf 'program %s\n' "$p"

#: ask_image
# In a container: where no Python knows the engine, its folder may still lie in one that no program's first line names.
printf '@@ found\n'
found=$(ask "$@"); printf '%s\n' "$found"
case "$found" in "$3 "*) ;; *)
  find / -xdev -maxdepth 8 -type d -name "$3-*.dist-info" 2>/dev/null | head -n 1 |
    sed "s,.*/,,; s/\.dist-info\$//; s/-/ /" ;;
esac
printf '@@ end\n'

#: ask_own
# A wheel for another processor, or without a library that it wants, is installed all right and cannot be loaded.
printf '@@ found\n'
if p=$(command -v "$1"); then
  found=$("$p" -c "$VERSIONS" "$3" 2>/dev/null); printf '%s\nprogram %s\n' "$found" "$p"
  [ -z "$found" ] || said=$(timeout 60 "$p" -c "import $3" 2>&1 >/dev/null </dev/null) ||
    printf '@@ broken\nexit %s: %s\n' $? "$(printf %s "$said" | tail -n 1 | cut -c 1-280)"
fi
printf '@@ end\n'

#: ask_program
printf '@@ found\n'
p=$(command -v "$2") || { printf '@@ end\n'; exit 0; }
printf 'program %s\n@@ printed\n' "$p"; "$p" --version 2>&1 | head -n 20
printf '@@ end\n'

#: probe
i=$(docker image inspect --format '{{.Id}} {{.Architecture}}' "$1" 2>/dev/null ||
  { [ -n "$2" ] && docker image inspect --format '{{.Id}} {{.Architecture}}' "$2" 2>/dev/null; }) || exit 0
id=${i%% *}; f="$(x "$3")/images/${id#sha256:}-$4"
if [ -s "$f" ]; then cat "$f"; exit 0; fi
[ "$5" = run ] || exit 0
t=$(mktemp) || exit 1; trap 'rm -f "$t" "$t.e"' EXIT; gpus="$6"; ask="$7"; shift 7
look() { g="$1"; shift
  docker run --rm --network none --env "VERSIONS=$VERSIONS" $g --entrypoint sh "$id" -c "$ask" sh "$@"; }
{ printf '@@ arch\n%s\n' "${i##* }"
  case "$(uname -m) ${i##* }" in
    "x86_64 amd64"|"aarch64 arm64") if [ -z "$gpus" ] || ! look "$gpus" "$@"; then look "" "$@"; fi ;;
    *) printf '@@ found\n@@ end\n' ;;
  esac
} >"$t" 2>"$t.e"
cat "$t"; head -c 400 "$t.e" >&2
if grep -q '^@@ end' "$t"; then mkdir -p "${f%/*}" && mv "$t" "$f"; fi
exit 0

#: describe
docker image inspect --format '@@ image
{{json .Id}}
@@ arch
{{.Architecture}}
@@ size
{{.Size}}
@@ labels
{{json .Config.Labels}}' "$1" || exit
printf '@@ base\n'; docker image inspect --format '{{.Id}} {{join .RepoDigests " "}}' "$2" 2>/dev/null
printf '@@ packages\n'
docker run --rm --network none --entrypoint cat "$1" "$3" 2>/dev/null
exit 0
