# Sent to nodes by inventory.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: quick
# A cache of fifty models is to be listed in seconds: names instead of a pattern over megabytes of an index, no headers
# of shards, and of a GGUF file only what stands before its tokenizer.
heads() { :; }
index() { LC_ALL=C tr ',' '\n' <"$1" | LC_ALL=C awk -F'"' -v name="${1##*/}" '
  NF > 1 && $(NF - 1) ~ /\.(safetensors|bin)$/ { n++; if (!seen[$(NF - 1)]++) print "shard\t\"" $(NF - 1) "\"" }
  END { printf "index\t%s\t\t%d\n", name, n }'; }
gguf() { case "$1" in *.gguf) printf 'gguf\t'; head -c 65536 "$1" | gzip -1c | base64 | tr -d '\n'; echo ;; esac; }

#: entries
# `entry ID PLACE PATH ROOT REVISION`. GGUF files count one by one, those that are a model's first or only one.
has() { for f; do [ ! -e "$f" ] && [ ! -L "$f" ] || return 0; done; return 1; }
tensors() { has "$1"/*.safetensors "$1"/*.bin || ! has "$1"/*.gguf "$1"/*/*.gguf; }
entry() { printf '\n@ENTRY@\t%s\t%s\n' "$1" "$2"; shift 2; one "$@"; }
ggufs() { find -L "$1" $4 -name '.*' ! -path "$1" -prune -o -type f -name '*.gguf' -print 2>/dev/null | sort |
  while IFS= read -r f; do
    case "$f" in *-00001-of-*) ;; *-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].gguf) continue ;; esac
    entry "$2" "${f#"${2:+$1/}"}" "$f" "$f" "$3"
  done; }

#: hub
ref() { [ -f "$1/refs/main" ] || { echo noref; return 0; }
  [ "$m" != "$2" ] || [ ${#2} -eq $(wc -c <"$1/refs/main") ] || echo badref; }
hub() { for r in "$1"/models--*; do
  [ -d "$r" ] || continue
  m=; w=; id=$(printf %s "${r##*/models--}" | sed 's,--,/,'); [ ! -f "$r/refs/main" ] || m=$(cat "$r/refs/main")
  for s in "$r"/snapshots/*; do
    [ -d "$s" ] || continue
    v="${s##*/}"; w="$w $v "
    ! tensors "$s" || { entry "$id" "" "$s" "$r" "$v"; ref "$r" "$v"; }
    ggufs "$s" "$id" "$v" ""
  done
  case "$w" in *" ${m:-:} "*) ;; *) [ -z "$m" ] || entry "$id" "" "$r/snapshots/$m" "$r" "$m" ;; esac
  [ -n "$m$w" ] || entry "$id" "" "" "$r" ""
done; }

#: folders
# A folder inside a model's folder is a part of it, one beside a stray config.json is not. Whole disks are not searched.
folders() { case "$1" in /|"$HOME"|/home|/root|/mnt|/media|/data|/tmp|/var|/opt|/usr|/srv) set -- "$1" 2 ;; esac
  find -L "$1" -maxdepth "$2" \( -name '.*' -o -name 'models--*' \) ! -path "$1" -prune -o \
    -type f \( -name config.json -o -name '*.safetensors' \) -print 2>/dev/null |
    sed 's,/[^/]*$,/,' | LC_ALL=C sort -u | while IFS= read -r d; do
    case "$d" in "${last:-:}"*) continue ;; esac
    if has "$d"*.safetensors "$d"*.bin; then last="$d"
    elif [ "$d" = "$1/" ] || has "$d"*.gguf "$d"*/*.gguf; then continue; fi
    d="${d%/}"; entry "" "$d" "$d" "$d" ""
  done
  ggufs "$1" "" "" "-maxdepth $2"; }

#: all
hub "$(x "$1")"; models=$(x "$2"); folders "$models" 3; shift 2
for p; do p=$(x "$p"); case "$p/" in "$models"/*) ;; *) folders "$p" 2 ;; esac; done; :
