"""Weights and images: what a node has, and how the rest is copied to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.domain.command import Command
from sparkwright.remote.host import script

# Lies in a folder for as long as it is being copied: between two files nothing else would tell half a model from all
# of it. Its name makes it an unfinished download for whoever looks.
COPYING = "sparkwright-copy.incomplete"
PARTIAL = ".sparkwright-partial"

# A model in several GGUF files is named by its first one.
_PARTS = r"""
first() { case "$1" in *-00001-of-*.gguf) return 0 ;; esac; return 1; }
files() { if first "$1"; then printf '%s\0' "${1%-00001-of-*}"-[0-9]*-of-[0-9]*.gguf
  else find -L "$1" -name @PARTIAL@ -prune -o -type f -print0 2>/dev/null; fi; }
""".replace("@PARTIAL@", PARTIAL)

# `head FILE PROMISED TENSORS` for each safetensors file that an engine loads: bytes that its own header promises, -1
# for a file without one; then `tensor NAME DTYPE BYTES COUNT` over all of them, numbers between dots as `#`.
# Only headers are read: 8 bytes of their length, little-endian whatever the node is, and JSON with one object a tensor.
_HEADS = r"""
named() { LC_ALL=C grep -oE '"[^"]*\.(safetensors|bin)"' "$1" | LC_ALL=C sort | uniq -c; }
loaded() { i=model.safetensors.index.json
  if [ -f $i ]; then named $i | sed 's/^ *[0-9]* "//;s/"$//'
  elif [ -f model.safetensors ]; then echo model.safetensors
  else for f in *.safetensors; do [ ! -f "$f" ] || printf '%s\n' "$f"; done; fi; }
header() { set -- "$1" $(od -An -v -tu1 -N8 "$1")
  if [ $# != 9 ] || [ "$6$7$8$9" != 0000 ]; then printf '\001-9\t%s\n' "$1"; return 0; fi
  n=$(($2 + ($3 << 8) + ($4 << 16) + ($5 << 24)))
  [ $n -le 100000000 ] || { printf '\001-9\t%s\n' "$1"; return 0; }
  printf '\001%s\t%s\n' "$n" "$1"; tail -c +9 "$1" | head -c "$n" | tr -d '\n' | tr '}' '\n'; echo; }
heads() { (cd "$1" 2>/dev/null && loaded | while IFS= read -r f; do [ ! -f "$f" ] || header "$f"; done) | LC_ALL=C awk '
function told() { if (file != "") printf "head\t%s\t%.0f\t%d\n", file, 8 + long + end, many }
substr($0, 1, 1) == "\001" { told(); tab = index($0, "\t"); long = substr($0, 2, tab - 2) + 0
  file = substr($0, tab + 1); end = many = 0; next }
match($0, /"data_offsets" *: *\[ *[0-9]+ *, *[0-9]+/) {
  split(substr($0, RSTART, RLENGTH), part, /[^0-9]+/); from = part[2] + 0; to = part[3] + 0; if (to > end) end = to
  type = match($0, /"dtype" *: *"[A-Za-z0-9_]+/) ? substr($0, RSTART, RLENGTH) : "?"; sub(/.*"/, "", type)
  name = match($0, /"[^"]+" *: *[{]/) ? substr($0, RSTART + 1, RLENGTH - 1) : "?"; sub(/" *: *[{]$/, "", name)
  while (sub(/\.[0-9]+\./, ".#.", name)); sub(/\.[0-9]+$/, ".#", name); gsub(/\t/, " ", name)
  key = name "\t" type; bytes[key] += to - from; count[key]++; many++ }
END { told(); for (key in bytes) printf "tensor\t%s\t%.0f\t%d\n", key, bytes[key], count[key] }'; }
index() { named "$1" | LC_ALL=C awk -v name="${1##*/}" -v total="$(
    LC_ALL=C grep -oE '"total_size" *: *[0-9]+' "$1" | LC_ALL=C grep -oE '[0-9]+$' | head -n 1)" '
  { n += $1; sub(/^ *[0-9]+ /, ""); print "shard\t" $0 } END { printf "index\t%s\t%s\t%d\n", name, total, n }'; }
gguf() { [ -f "$1" ] || for f in "$1"/*.safetensors "$1"/*.gguf; do [ ! -f "$f" ] || { set -- "$f"; break; }; done
  case "$1" in *.gguf) [ ! -f "$1" ] || {
    printf 'gguf\t'; head -c @GGUF@ "$1" | gzip -1c | base64 | tr -d '\n'; echo; } ;; esac; }
"""
# What stands before the tensors of a GGUF file is mostly its tokenizer: 6 to 10 MB, and a third of it when packed.
_GGUF_HEAD = 12 * 1024 * 1024

_LIST = (
    _PARTS
    + _HEADS.replace("@GGUF@", str(_GGUF_HEAD))
    + r"""
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
""".replace("@PARTIAL@", PARTIAL)
)
_HUB = (
    _LIST
    + r"""
root="$(x "$1")/models--$(printf %s "$2" | sed 's,/,--,g')"; rev="$3"
if [ -z "$rev" ] || [ "$rev" = main ]; then
  if [ -f "$root/refs/main" ]; then
    rev=$(cat "$root/refs/main"); [ "$(printf %s "$rev" | wc -c)" = "$(wc -c < "$root/refs/main")" ] || echo badref
    if [ ! -d "$root/snapshots/$rev" ] && s=$(ls -t "$root/snapshots" 2>/dev/null | head -1) && [ -n "$s" ]; then
      printf 'lostref\t%s\t%s\n' "$(printf %s "$rev" | tr '\n\t' '  ')" "$s"; rev="$s"; fi
  elif [ -d "$root/snapshots" ]; then echo noref; rev=$(ls -t "$root/snapshots" | head -1); else rev=; fi
elif [ -f "$root/refs/$rev" ]; then rev=$(cat "$root/refs/$rev"); fi
if [ -n "$rev" ]; then one "$root/snapshots/$rev" "$root" "$rev"; else one "" "$root" ""; fi
"""
)


def list_hub(hub: str, model: str, revision: str) -> Command:
    """A model in a Hugging Face hub cache; the listing is read by facts.checkpoint."""
    return script(_HUB, hub, model, revision, timeout=60)


def list_path(path: str) -> Command:
    """A model folder or a GGUF file."""
    return script(_LIST + 'p=$(x "$1"); one "$p" "$p" ""', path, timeout=60)


def peer() -> Command:
    """What another node must know to log in here: `USER PORT HOME`, then the public host keys."""
    text = r"""set -- ${SSH_CONNECTION:-- - - 22}; printf '%s %s %s\n' "$(id -un)" "$4" "$HOME"
    cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null"""
    return script(text)


@dataclass(frozen=True, slots=True)
class Peer:
    """How a node reaches another over the fabric. known_hosts: lines for its address. local: both are this machine."""

    user: str
    address: str
    port: int
    known_hosts: str
    local: bool = False


# The target's host keys were read over the connection that the user's own known_hosts vouches for.
_RSH = r"""
k=$(mktemp) || exit 1; trap 'rm -f "$k"' EXIT; trap 'exit 143' TERM INT HUP
printf '%s' "$1" > "$k"
rsh="ssh -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$k"
rsh="$rsh -o LogLevel=ERROR -p $2"
at="$3"; shift 3
"""
_LOCALLY = 'rsh=; at=\nthere() { sh -c "$1"; }\n'
_THERE = 'there() { $rsh -- "$at" "sh -c \'$1\'"; }\n'
# The path goes by stdin, for a login shell of any kind would read it in its own way. $d ends in `/` for a folder.
# Only what ssh itself needs is done before it is clear that the peer lets us in: a refused copy changes nothing.
_COPY = r"""
s="$1"; d="$2"; t=; [ ! -d "$s" ] || t=/
make='IFS= read -r d; mkdir -p "${d%/*}" && { [ "${d%/}" = "$d" ] || : > "${d}@COPYING@"; }'
printf '%s\n' "$d$t" | there "$make" || exit
set -- "$s$t"
if first "$s"; then set -- "${s%-00001-of-*}"-[0-9]*-of-[0-9]*.gguf; d="${d%/*}/"; fi
# Two refs/main are of one size and, made by one script, of one second: times are compared to the nanosecond.
# huggingface_hub 2 links blobs to a store next to all models: what a link finds outside the tree travels as a file.
links=-L; [ -z "$t" ] || links=--copy-unsafe-links
rsync -a $links -s --modify-window=-1 --partial-dir=@PARTIAL@ --exclude=@COPYING@ --info=progress2 --no-inc-recursive \
  ${rsh:+-e "$rsh"} -- "$@" "${at:+$at:}$d$t" 2>&1
"""
_SETTLE = r"""
p=$(x "$1"); [ -e "$p" ] || exit 0
[ ! -d "$p" ] || [ "$2" != all ] || find "$p" -name '*.incomplete' -delete || exit
sync -f "$p" 2>/dev/null || sync
# GNU dd drops a file's pages without root: 150 GB of page cache would otherwise leave no memory for the load.
files "$p" | xargs -0 -r -I'{}' dd if='{}' iflag=nocache count=0 status=none 2>/dev/null; :
"""


def copy_tree(source: str, target: str, peer: Peer, timeout: float = 6 * 3600) -> Command:
    """rsync of a folder (or one file) from the node that runs this to the peer: resumable, with `progress2` output.

    source and target are absolute. Exit code: ssh's 255 when there is no way to the peer, 127 without rsync there or
    here, else rsync's (11: no space there, 12: cut off). A folder counts as unfinished until it was `settle`d.
    """
    copy = _PARTS + _COPY.replace("@COPYING@", COPYING).replace("@PARTIAL@", PARTIAL)
    if peer.local:
        return script(_LOCALLY + copy, source, target, timeout=timeout, changes=f"copy {source} to {target}")
    return _to_peer(_RSH + _THERE + copy, peer, (source, target), timeout, f"copy {source} to {peer.address}")


def settle(path: str) -> Command:
    """After a complete copy or download, where it arrived: nothing is unfinished any more, and the page cache is clean.

    Leftovers of earlier downloads of this model (`*.incomplete`) go: all that they were to become is there.
    """
    return script(_PARTS + _SETTLE, path, "all", timeout=900, changes=f"{path} is complete: remove *.incomplete")


def drop_cache(path: str) -> Command:
    """Takes a model's files out of the page cache of this node."""
    return script(_PARTS + _SETTLE, path, "", timeout=900)


# Docker forgets the digest of an image that is copied, and prunes what has no name: it travels under a tag of ours.
_COPY_IMAGE = r"""
n="$1"; o=$(mktemp) || exit 1; trap 'rm -f "$k" "$o"' EXIT
if [ -n "$2" ]; then docker tag "$1" "$2" 2>/dev/null || docker image inspect "$2" >/dev/null || exit; n="$2"; fi
{ docker save "$n" || echo save >"$o"; } | dd bs=1M status=progress | $rsh -- "$at" docker load
rc=$?; [ ! -s "$o" ] || rc=1; exit $rc
"""
_IMAGE = r"""f='{{.Id}} {{.Size}}'
docker image inspect --format "$f" "$1" 2>/dev/null || { [ -n "$2" ] && docker image inspect --format "$f" "$2"; }
"""


def copy_image(reference: str, peer: Peer, timeout: float = 2 * 3600) -> Command:
    """`docker save` here, `docker load` there; dd prints bytes so far on stderr."""
    words = (reference, copied_tag(reference))
    return _to_peer(_RSH + _COPY_IMAGE, peer, words, timeout, f"copy image {reference} to {peer.address}")


def image(reference: str) -> Command:
    """Prints `ID SIZE` of an image on this node, pulled or copied; exit 1 when it is not there."""
    return script(_IMAGE, reference, copied_tag(reference))


def copied_tag(reference: str) -> str:
    """The name of a copied image whose reference is a digest; '' for one with a tag, which copies keep."""
    name, at, digest = reference.partition("@sha256:")
    if not at:
        return ""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:sparkwright-{digest[:16]}"


def _to_peer(text: str, peer: Peer, args: Sequence[str], timeout: float, changes: str) -> Command:
    words = (peer.known_hosts, str(peer.port), f"{peer.user}@{peer.address}", *args)
    command = script(text, *words, timeout=timeout, changes=changes)
    return Command(command.argv, timeout=timeout, changes=changes, forward_agent=True)


def known_hosts(address: str, port: int, public_keys: Sequence[str]) -> str:
    """known_hosts lines for an address from `ssh_host_*_key.pub` lines."""
    name = address if port == 22 else f"[{address}]:{port}"
    return "".join(f"{name} {' '.join(key.split()[:2])}\n" for key in public_keys if len(key.split()) >= 2)


# The client's own bars are for terminals and hide elsewhere: what is on the disk tells how far it is.
_DOWNLOAD = r"""
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
"""


def download(hub: str, model: str, revision: str, token: str) -> Command:
    """The hub's own client on the node (`hf`), resumable, with lines `N bytes`. Exit 127: no client.

    token: '' for none; it goes by stdin, so that it is in no argv, file or log.
    """
    changes = f"hf download {model} {revision}".strip()
    stdin = f"{token}\n".encode()
    return script(_DOWNLOAD, hub, model, revision, timeout=12 * 3600, changes=changes, stdin=stdin)
