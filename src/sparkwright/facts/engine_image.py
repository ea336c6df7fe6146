"""Images as the node's Docker reports them: an engine's version, and images that sparkwright built."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.facts.fact import not_understood, sections, whole
from sparkwright.images.name import own
from sparkwright.remote.host import script
from sparkwright.remote.staging import copied_tag

# `version: 11549 (0f1e2d3)` of llama-server and its kin.
_VERSION = re.compile(r"^version: (\d+)\b", re.MULTILINE)
_ROW = re.compile(r"([A-Za-z0-9_.-]+) (\S+)")


def parse_found(done: Completed) -> EngineFound | Unknown | None:
    """Of engine_of_image and its kin; None when there is no image, or nothing is known of it yet."""
    parts = sections(done.stdout)
    if done.ok and not parts:
        return None
    if "end" not in parts:
        return not_understood(done, "docker")
    rows = [match for line in parts.get("found", "").splitlines() if (match := _ROW.fullmatch(line))]
    versions = {row[1]: row[2] for row in rows if row[1] != "program"}
    program = next((row[2] for row in rows if row[1] == "program"), "")
    if said := _VERSION.search(parts.get("said", "")):
        versions[program.rpartition("/")[2]] = said[1]
    return EngineFound(parts.get("arch", ""), versions, program)


# Without --force-rm a failed or interrupted step of the classic builder leaves its container behind.
_BUILD = 'exec docker build --force-rm "$@" - 2>&1'
# Importing an engine takes ten seconds; what pip wrote beside it tells its version at once. A program's first line
# names the Python that it belongs to, which need not be the first one on PATH.
_VERSIONS = """
import sys
from importlib import metadata, util
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        print(name, "?") if util.find_spec(name) else None
"""
_ASK = r"""
own="$1"; program="$2"; shift 2
first=; p=$(command -v "$program" 2>/dev/null) && IFS= read -r first <"$p" 2>/dev/null
case "$first" in '#!'*python*) first=${first#??}; first=${first%% *} ;; *) first= ;; esac
for python in "$own" "$first" python3 python; do
  [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
  found=$("$python" -c "$VERSIONS" "$@" 2>/dev/null) && [ -n "$found" ] || continue
  printf '%s\n' "$found"; break
done
[ -z "$p" ] || printf 'program %s\n' "$p"
"""
# In a container: where no Python knows the engine, its folder may still lie in one that no program's first line names.
_ASK_IMAGE = r"""
printf '@@ found\n'
found=$(ask "$@"); printf '%s\n' "$found"
case "$found" in "$3 "*) ;; *)
  find / -xdev -maxdepth 8 -type d -name "$3-*.dist-info" 2>/dev/null | head -n 1 |
    sed "s,.*/,,; s/\.dist-info\$//; s/-/ /" ;;
esac
printf '@@ end\n'
"""
_ASK_PROGRAM = r"""
printf '@@ found\n'
p=$(command -v "$2") || { printf '@@ end\n'; exit 0; }
printf 'program %s\n@@ said\n' "$p"; "$p" --version 2>&1 | head -n 20
printf '@@ end\n'
"""
_HOME = 'own=$(x "$1"); program=$(x "$2"); shift 2; set -- "$own" "$program" "$@"\n'
_PROBE = r"""
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
"""
_DESCRIBE = r"""
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
"""


def build(tag: str, labels: Mapping[str, str], context: bytes) -> Command:
    """`docker build` of a tar on stdin, with BuildKit or without; its lines come as they are made. Exit: docker's."""
    words = ["--tag", tag, *(word for name, value in labels.items() for word in ("--label", f"{name}={value}"))]
    made = script(_BUILD, *words, timeout=12 * 3600, changes=f"docker build {tag}", stdin=context)
    return Command(made.argv, {"BUILDKIT_PROGRESS": "plain"}, made.stdin, made.timeout, made.changes)


def describe(tag: str, base: str, freeze: str) -> Command:
    """Sections image, arch, size, labels, base (id and digests), packages (`freeze`: file in the image; may be absent).

    Exit 1 when the image is not there.
    """
    return script(_DESCRIBE, tag, base, freeze, timeout=60)


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for: Python packages, the engine's own first, and the program that starts it.

    says_version: the program itself prints it (`--version`), there is no package. own: the interpreter to ask first.
    """

    program: str
    packages: tuple[str, ...] = ()
    says_version: bool = False
    own: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return (self.own, self.program, *self.packages)


def known_engine(image: str, question: Question, cache: str) -> Command:
    """As `engine_of_image`, but only what an earlier one has found; nothing is started."""
    return _probe(image, question, cache, ("", ""))


def engine_of_image(image: str, question: Question, cache: str, gpu: bool = False) -> Command:
    """Sections arch, found (`NAME VERSION` lines, `?` where only the code is there), said, end; empty: no such image.

    Runs the image once; the answer is kept below `cache` for as long as the image's id is the same.
    gpu: the program links the driver's libraries, which are not in the image.
    """
    return _probe(image, question, cache, ("run", "--gpus all" if gpu else ""))


def _probe(image: str, question: Question, cache: str, how: tuple[str, str]) -> Command:
    ask = _ASK_PROGRAM if question.says_version else f"ask() {{ {_ASK} }}\n{_ASK_IMAGE}"
    kind = "-".join((*question.packages, question.program.strip("/").replace("/", "_")))
    words = (image, copied_tag(image), cache, kind, *how, ask, *question.words)
    return script(f"VERSIONS={quote(_VERSIONS)}\n{_PROBE}", *words, timeout=120)


def engine_of_node(question: Question) -> Command:
    """The same of the node itself, for the process runtime: no arch, nothing kept."""
    if question.says_version:
        return script(_HOME + _ASK_PROGRAM, *question.words)
    text = f"VERSIONS={quote(_VERSIONS)}\nask() {{ {_ASK} }}\nprintf '@@ found\\n'; ask \"$@\"; printf '@@ end\\n'"
    return script(_HOME + text, *question.words)


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """labels: ours, without prefix. base: id and digests of the image it began with, as far as the node has it.

    packages: `pip freeze` of the image, one `name==version` each; () where it has no Python.
    """

    id: str
    arch: str
    size: int
    labels: Mapping[str, str]
    base: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """For the record on the nodes."""
        return {
            "id": self.id,
            "architecture": self.arch,
            "size": self.size,
            "provenance": dict(self.labels),
            "base": list(self.base),
            "packages": list(self.packages),
        }


def parse(done: Completed) -> BuiltImage | Unknown:
    """Of `describe`."""
    parts = sections(done.stdout)
    size = whole(parts.get("size", ""))
    try:
        name, found = json.loads(parts.get("image", "")), json.loads(parts.get("labels", ""))
    except ValueError:
        return not_understood(done, "docker")
    if not isinstance(name, str) or not isinstance(found, dict) or size is None:
        return not_understood(done, "docker")
    labels = own({str(key): str(value) for key, value in found.items()})
    base, packages = parts.get("base", "").split(), parts.get("packages", "").splitlines()
    return BuiltImage(name, parts.get("arch", ""), size, labels, tuple(base), tuple(packages))
