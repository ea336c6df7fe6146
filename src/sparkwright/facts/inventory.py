"""All checkpoints of a node: the listing, entry by entry."""

from collections.abc import Iterator, Sequence
from typing import Any

from sparkwright.domain.checkpoint import Checkpoint, Stored
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts import checkpoint, gguf
from sparkwright.remote.host import script
from sparkwright.remote.staging import _LIST as LISTING

ENTRY = "@@ entry"
# A cache of fifty models is to be listed in seconds: names instead of a pattern over megabytes of an index, no headers
# of shards, and of a GGUF file only what stands before its tokenizer.
_QUICK = r"""
heads() { :; }
index() { LC_ALL=C tr ',' '\n' <"$1" | LC_ALL=C awk -F'"' -v name="${1##*/}" '
  NF > 1 && $(NF - 1) ~ /\.(safetensors|bin)$/ { n++; if (!seen[$(NF - 1)]++) print "shard\t\"" $(NF - 1) "\"" }
  END { printf "index\t%s\t\t%d\n", name, n }'; }
gguf() { case "$1" in *.gguf) printf 'gguf\t'; head -c 65536 "$1" | gzip -1c | base64 | tr -d '\n'; echo ;; esac; }
"""
# `entry ID PLACE PATH ROOT REVISION`. GGUF files count one by one, those that are a model's first or only one.
_ENTRIES = r"""
has() { for f; do [ ! -e "$f" ] && [ ! -L "$f" ] || return 0; done; return 1; }
tensors() { has "$1"/*.safetensors "$1"/*.bin || ! has "$1"/*.gguf "$1"/*/*.gguf; }
entry() { printf '\n@ENTRY@\t%s\t%s\n' "$1" "$2"; shift 2; one "$@"; }
ggufs() { find -L "$1" $4 -name '.*' ! -path "$1" -prune -o -type f -name '*.gguf' -print 2>/dev/null | sort |
  while IFS= read -r f; do
    case "$f" in *-00001-of-*) ;; *-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].gguf) continue ;; esac
    entry "$2" "${f#"${2:+$1/}"}" "$f" "$f" "$3"
  done; }
""".replace("@ENTRY@", ENTRY)
_HUB = r"""
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
"""
# A folder inside a model's folder is a part of it, one beside a stray config.json is not. Whole disks are not searched.
_FOLDERS = r"""
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
"""
_ALL = r"""
hub "$(x "$1")"; models=$(x "$2"); folders "$models" 3; shift 2
for p; do p=$(x "$p"); case "$p/" in "$models"/*) ;; *) folders "$p" 2 ;; esac; done; :
"""
_TEXT = LISTING + _QUICK + _ENTRIES + _HUB + _FOLDERS + _ALL


def inventory(hub: str, models: str, others: Sequence[str]) -> Command:
    """hub, models: the node's folders; others: more folders in which models may lie (of recipes' model.path).

    For each checkpoint a line `@@ entry`, its hub id ('' outside of the hub cache) and its place (a file inside that,
    '' for a whole snapshot, or a path), then what remote.staging lists of it. Read by facts.inventory.
    """
    return script(_TEXT, hub, models, *others, timeout=120)


# `general.file_type` of a GGUF header -> the name that its publishers give it (llama.h, enum llama_ftype).
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}  # fmt: skip
_MARK = f"\n{ENTRY}\t"


def parse(done: Completed, node: str) -> tuple[Stored, ...] | Unknown:
    """In the order of the listing. Never raises; an entry that cannot be read is left out."""
    if not done.ok:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    return tuple(_entries(done.stdout, node))


def _entries(text: str, node: str) -> Iterator[Stored]:
    for entry in text.split(_MARK)[1:]:
        head, _, rows = entry.partition("\n")
        name, _, place = head.partition("\t")
        found = checkpoint.parse(Completed(0, rows, ""))
        if isinstance(found, Checkpoint):
            yield Stored(node, name, place, _format(found, rows), found, _missing(found))


def _missing(found: Checkpoint) -> tuple[str, ...]:
    if not found.files:
        return found.missing or ("no file of it is there",)
    return found.missing if found.weights or found.missing else ("no weights",)


def _format(found: Checkpoint, rows: str) -> str:
    """`nvfp4 experts, bf16`, `int4 (gptq)`, `gguf Q4_K_M`; '?' where it is unknown."""
    packed = next((row.partition("\t")[2] for row in rows.splitlines() if row.startswith("gguf\t")), "")
    if packed:
        return f"gguf {_file_type(packed)}"
    shape = found.shape
    return _written(shape) if isinstance(shape, ModelShape) else "?"


def _file_type(packed: str) -> str:
    header = gguf.unpack(packed)
    kind: Any = header.metadata.get("general.file_type") if header else None
    return _FILE_TYPES.get(kind, "?") if isinstance(kind, int) else "?"


def _written(shape: ModelShape) -> str:
    rest, experts = shape.format or "?", shape.expert_format
    method = f" ({shape.quantization})" if rest.startswith("int") and shape.quantization else ""
    return f"{experts} experts, {rest}" if experts and experts != rest else f"{rest}{method}"
