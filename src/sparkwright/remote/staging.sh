# Sent to nodes by staging.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: parts
# A model in several GGUF files is named by its first one.
first() { case "$1" in *-00001-of-*.gguf) return 0 ;; esac; return 1; }
files() { if first "$1"; then printf '%s\0' "${1%-00001-of-*}"-[0-9]*-of-[0-9]*.gguf
  else find -L "$1" -name @PARTIAL@ -prune -o -type f -print0 2>/dev/null; fi; }

#: heads
# `head FILE PROMISED TENSORS` for each safetensors file that an engine loads: bytes that its own header promises, -1
# for a file without one; then `tensor NAME DTYPE BYTES COUNT` over all of them, numbers between dots as `#`.
# Only headers are read: 8 bytes of their length, little-endian whatever the node is, and JSON with one object a tensor.
# Real ones are below 2 MB. Longer than @LONGEST@ counts as none, as do those beyond eight times that of one model; no
# tensor is named where there are more than 20,000 kinds, or in a record of more than 64 KiB.
named() { LC_ALL=C grep -oE '"[^"]*\.(safetensors|bin)"' "$1" | LC_ALL=C sort | uniq -c; }
loaded() { i=model.safetensors.index.json
  if [ -f $i ]; then named $i | sed 's/^ *[0-9]* "//;s/"$//'
  elif [ -f model.safetensors ]; then echo model.safetensors
  else for f in *.safetensors; do [ ! -f "$f" ] || printf '%s\n' "$f"; done; fi; }
header() { set -- "$1" $(od -An -v -tu1 -N8 "$1")
  if [ $# != 9 ] || [ "$6$7$8$9" != 0000 ]; then printf '\001-9\t%s\n' "$1"; return 0; fi
  n=$(($2 + ($3 << 8) + ($4 << 16) + ($5 << 24)))
  sum=$((${sum:-0} + n))
  [ $n -le @LONGEST@ ] && [ $sum -le $((@LONGEST@ * 8)) ] || { printf '\001-9\t%s\n' "$1"; return 0; }
  printf '\001%s\t%s\n' "$n" "$1"; tail -c +9 "$1" | head -c "$n" | tr -d '\n' | tr '}' '\n'; echo; }
# One process for all files, for thousands of shards cost half a minute otherwise; the shell where there is no python3.
all_headers='import os, sys
out, total, most = sys.stdout.buffer, 0, @LONGEST@
for name in sys.stdin.buffer.read().split(b"\n"):
  if not name or not os.path.isfile(name): continue
  try: f = open(name, "rb")
  except OSError: out.write(b"\1-9\t%s\n" % name); continue
  with f:
    raw = f.read(8); n = int.from_bytes(raw, "little"); plain = len(raw) == 8 and n < 1 << 32; total += n if plain else 0
    if not plain or n > most or total > 8 * most: out.write(b"\1-9\t%s\n" % name); continue
    out.write(b"\1%d\t%s\n" % (n, name)); out.write(f.read(n).replace(b"\n", b"").replace(b"}", b"\n") + b"\n")'
each() { if python3 -I -S -c '' 2>/dev/null; then python3 -I -S -c "$all_headers"
  else while IFS= read -r f; do [ ! -f "$f" ] || header "$f"; done; fi; }
heads() { (cd "$1" 2>/dev/null && loaded | each) | LC_ALL=C awk '
function told() { if (file != "") printf "head\t%s\t%.0f\t%d\n", file, 8 + long + end, many }
substr($0, 1, 1) == "\001" { told(); tab = index($0, "\t"); long = substr($0, 2, tab - 2) + 0
  file = substr($0, tab + 1); end = many = 0; next }
length($0) > 65536 { next }
match($0, /"data_offsets" *: *\[ *[0-9]+ *, *[0-9]+/) {
  split(substr($0, RSTART, RLENGTH), part, /[^0-9]+/); from = part[2] + 0; to = part[3] + 0; if (to > end) end = to
  type = match($0, /"dtype" *: *"[A-Za-z0-9_]+/) ? substr($0, RSTART, RLENGTH) : "?"; sub(/.*"/, "", type)
  name = match($0, /"[^"]+" *: *[{]/) ? substr($0, RSTART + 1, RLENGTH - 1) : "?"; sub(/" *: *[{]$/, "", name)
  while (sub(/\.[0-9]+\./, ".#.", name)); sub(/\.[0-9]+$/, ".#", name); gsub(/\t/, " ", name)
  key = name "\t" type; if (!(key in bytes)) kinds++
  if (kinds <= 20000) { bytes[key] += to - from; count[key]++ }; many++ }
END { told(); if (kinds <= 20000) for (key in bytes) printf "tensor\t%s\t%.0f\t%d\n", key, bytes[key], count[key] }'; }
index() { named "$1" | LC_ALL=C awk -v name="${1##*/}" -v total="$(
    LC_ALL=C grep -oE '"total_size" *: *[0-9]+' "$1" | LC_ALL=C grep -oE '[0-9]+$' | head -n 1)" '
  { n += $1; sub(/^ *[0-9]+ /, ""); print "shard\t" $0 } END { printf "index\t%s\t%s\t%d\n", name, total, n }'; }
gguf() { [ -f "$1" ] || for f in "$1"/*.safetensors "$1"/*.gguf; do [ ! -f "$f" ] || { set -- "$f"; break; }; done
  case "$1" in *.gguf) [ ! -f "$1" ] || {
    printf 'gguf\t'; head -c @GGUF@ "$1" | gzip -1c | base64 | tr -d '\n'; echo; } ;; esac; }

#: list
one() { printf 'path\t%s\nroot\t%s\nrevision\t%s\n' "$1" "$2" "$3"
  [ -e "$1" ] || [ -L "$1" ] || return 0
  if first "$1"; then (cd "${1%/*}" && b="${1##*/}" && b="${b%-00001-of-*}" &&
    stat -L --printf 'file\t%s\t%n\n' "$b"-[0-9]*-of-[0-9]*.gguf)
  else find -L "$1" -name @PARTIAL@ -prune -o -type f -printf 'file\t%s\t%P\n' 2>/dev/null; fi
  find "$1" -xtype l -printf 'broken\t%P\n'
  find "$2" -name '*.incomplete' -printf 'incomplete\t%P\n' 2>/dev/null
  for i in "$1"/*.index.json; do [ ! -f "$i" ] || index "$i"; done
  for c in config hf_quant_config; do
    [ ! -f "$1/$c.json" ] || { printf '%s\t' $c; head -c 33554432 "$1/$c.json" | tr -d '\n\t'; echo; }
  done
  heads "$1"; gguf "$1"; }

#: hub
root="$(x "$1")/models--$(printf %s "$2" | sed 's,/,--,g')"; rev="$3"
if [ -z "$rev" ] || [ "$rev" = main ]; then
  if [ -f "$root/refs/main" ]; then
    rev=$(cat "$root/refs/main"); [ "$(printf %s "$rev" | wc -c)" = "$(wc -c < "$root/refs/main")" ] || echo badref
    if [ ! -d "$root/snapshots/$rev" ] && s=$(ls -t "$root/snapshots" 2>/dev/null | head -1) && [ -n "$s" ]; then
      printf 'lostref\t%s\t%s\n' "$(printf %s "$rev" | tr '\n\t' '  ')" "$s"; rev="$s"; fi
  elif [ -d "$root/snapshots" ]; then echo noref; rev=$(ls -t "$root/snapshots" | head -1); else rev=; fi
elif [ -f "$root/refs/$rev" ]; then rev=$(cat "$root/refs/$rev"); fi
if [ -n "$rev" ]; then one "$root/snapshots/$rev" "$root" "$rev"; else one "" "$root" ""; fi

#: rsh
# The target's host keys were read over the connection that the user's own known_hosts vouches for. The key that `init`
# has made is tried after the user's own.
k=$(mktemp) || exit 1; trap 'rm -f "$k"' EXIT; trap 'exit 143' TERM INT HUP
printf '%s' "$known_hosts" > "$k"
rsh="ssh -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$k"
rsh="$rsh -o LogLevel=ERROR -o ServerAliveInterval=5 -o ServerAliveCountMax=6 -p $1"
i="$HOME/.config/sparkwright/peers/ssh/id_ed25519"; case $i in *[!A-Za-z0-9/._-]*) i= ;; esac
if [ -n "$i" ] && [ -f "$i" ]; then
  for f in id_ed25519 id_ecdsa id_rsa; do [ ! -f "$HOME/.ssh/$f" ] || rsh="$rsh -o IdentityFile=~/.ssh/$f"; done
  rsh="$rsh -o IdentityFile=$i"
fi
at="$2"; shift 2

#: copy
# The path goes by stdin, for a login shell of any kind would read it in its own way. $d ends in `/` for a folder.
# Only what ssh itself needs is done before it is clear that the peer lets us in: a refused copy changes nothing.
s="$1"; d="$2"; b="$3"; t=; [ ! -d "$s" ] || t=/
make='IFS= read -r d; mkdir -p "${d%/*}" && { [ "${d%/}" = "$d" ] || : > "${d}@COPYING@"; }'
printf '%s\n' "$d$t" | there "$make" || exit
set -- "$s$t"
if first "$s"; then set -- "${s%-00001-of-*}"-[0-9]*-of-[0-9]*.gguf; d="${d%/*}/"; fi
# Two refs/main are of one size and, made by one script, of one second: times are compared to the nanosecond.
# huggingface_hub 2 links blobs to a store next to all models: what a link finds outside the tree travels as a file.
links=-L; [ -z "$t" ] || links=--copy-unsafe-links
rsync -a $links -s --modify-window=-1 --partial-dir=@PARTIAL@ --exclude=@COPYING@ --info=progress2 --no-inc-recursive \
  --timeout=60 --bwlimit="$b" ${rsh:+-e "$rsh"} -- "$@" "${at:+$at:}$d$t" 2>&1

#: settle
p=$(x "$1"); [ -e "$p" ] || exit 0
[ ! -d "$p" ] || [ "$2" != all ] || find "$p" -name '*.incomplete' -delete || exit
sync -f "$p" 2>/dev/null || sync
# Without root, a file's owner drops its pages: 150 GB of page cache would otherwise leave no memory for the load.
# One process for all files, or GNU dd for each where there is no python3.
drop='import os, sys
for p in filter(None, sys.stdin.buffer.read().split(bytes(1))):
  try: f = os.open(p, os.O_RDONLY); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED); os.close(f)
  except OSError: pass'
files "$p" | PATH="$PATH:/usr/local/bin" python3 -I -S -c "$drop" 2>/dev/null ||
  files "$p" | xargs -0 -r -I'{}' dd if='{}' iflag=nocache count=0 status=none 2>/dev/null; :

#: copy_image
# Docker forgets the digest of an image that is copied, and prunes what has no name: it travels under a tag of ours.
n="$1"; o=$(mktemp) || exit 1; trap 'rm -f "$k" "$o"' EXIT
if [ -n "$2" ]; then docker tag "$1" "$2" 2>/dev/null || docker image inspect "$2" >/dev/null || exit; n="$2"; fi
{ docker save "$n" || echo save >"$o"; } | dd bs=1M status=progress | $rsh -- "$at" docker load
rc=$?; [ ! -s "$o" ] || rc=1; exit $rc

#: image
f='{{.Id}} {{.Size}}{{range .RepoDigests}} {{.}}{{end}}'
docker image inspect --format "$f" "$1" 2>/dev/null || { [ -n "$2" ] && docker image inspect --format "$f" "$2"; }

#: download
# The client's own bars are for terminals and hide elsewhere: what is on the disk tells how far it is.
IFS= read -r HF_TOKEN; if [ -n "$HF_TOKEN" ]; then export HF_TOKEN; else unset HF_TOKEN; fi
h=$(x "$1"); r="$h/models--$(printf %s "$2" | sed 's,/,--,g')"
hf=$(command -v hf || ls "$HOME/.local/bin/hf" 2>/dev/null || command -v huggingface-cli) || exit 127
export HF_HUB_OFFLINE=0 HF_HUB_DISABLE_PROGRESS_BARS=1 HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_UPDATE_CHECK=1
NO_COLOR=1 "$hf" download "$2" --cache-dir "$h" ${3:+--revision "$3"} </dev/null 2>&1 &
c=$!
while kill -0 $c 2>/dev/null; do
  n=$(du -sLB1 "$r" 2>/dev/null | cut -f1); [ "${n:-0}" = 0 ] || printf '%s bytes\n' "$n"; sleep 0.5
done
wait $c
