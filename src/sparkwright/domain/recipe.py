"""A recipe: model, engine, image, parallelism, limits. Resolved: profile applied, defaults filled."""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.model import ModelShape
from sparkwright.domain.units import MIB
from sparkwright.domain.values import dataclass, field

PTXAS = "/usr/local/cuda/bin/ptxas"
_SHELLS, _SHELL_WORDS = ("sh", "bash", "dash"), 3


@dataclass(frozen=True, slots=True)
class PythonPackages:
    """Wheels of one index, `name==version` each, with ` --hash=sha256:...` where it is known. index: '' is PyPI."""

    packages: tuple[str, ...]
    index: str = ""


@dataclass(frozen=True, slots=True)
class BuildSource:
    """A public repository at one commit, built into a wheel.

    commit: 40 hex digits. pull_request: where it comes from, for the reader; the hash alone decides what is built.
    version: what the package calls itself; a fetch of one commit has no tags for it. folder: where its
    pyproject.toml is. prepare: commands in that folder before the wheel is built.
    """

    name: str
    repository: str
    commit: str
    pull_request: int = 0
    version: str = ""
    folder: str = "."
    prepare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """base: image, by digest unless `unpinned` has the reason. platform: linux/arm64 is GB10.

    cuda_arch: TORCH_CUDA_ARCH_LIST and its like; '' for an image without CUDA code. jobs: parallel compilers, 0: the
    builders' own choice. packages: of the distribution. steps: shell commands at the end, in the image.
    """

    base: str
    unpinned: str = ""
    platform: str = "linux/arm64"
    cuda_arch: str = "12.1a"
    jobs: int = 0
    packages: tuple[str, ...] = ()
    python: tuple[PythonPackages, ...] = ()
    sources: tuple[BuildSource, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[str, ...] = ()


class Runtime(StrEnum):
    DOCKER = "docker"
    PROCESS = "process"


class Expose(StrEnum):
    """The reach of the endpoint. Everything but loopback and fabric needs a key."""

    LOOPBACK = "loopback"
    FABRIC = "fabric"
    ALL = "all"


class GatewayTls(StrEnum):
    """The gateway's encryption: a CA of its own on the head node, a given certificate, or none."""

    INTERNAL = "internal"
    FILES = "files"
    OFF = "off"


class RecipeState(StrEnum):
    """ready: known to serve. documented: written from sources, not tested on hardware. refused: known not to work."""

    READY = "ready"
    DOCUMENTED = "documented"
    REFUSED = "refused"


class ModelKind(StrEnum):
    """The kind of answers a model gives; readiness and probes ask for that kind."""

    CHAT = "chat"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    TRANSCRIPTION = "transcription"


@dataclass(frozen=True, slots=True)
class Stated:
    """Facts of the model as the author of a recipe wrote them down, unmeasured; 0 or '' where the author is silent.

    parameters, active: numbers of the model, and those that work on a token. dtype: of the weights; kv_dtype: of the
    cache, both in the author's words. memory: bytes of GPU memory that all nodes together need at least. weights: bytes
    of the loaded weights. kv_bytes: of a token in the cache, over all layers. by: file or tool that says so.
    """

    parameters: int = 0
    active: int = 0
    dtype: str = ""
    kv_dtype: str = ""
    memory: int = 0
    weights: int = 0
    kv_bytes: int = 0
    layers: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """hub id (`org/name`) or a path on the nodes; `size` is the checkpoint in bytes as published (0: not known).

    aliases: more names that clients may send, besides served_name.
    on_disk: bytes of it that never go into memory: tables of which the engine reads rows from disk while it serves.
    shape: its dimensions as published, for as long as no node has its config.json. stated: what an imported recipe
    says of it, which is worth less than either.
    """

    id: str = ""
    revision: str = ""
    path: str = ""
    served_name: str = ""
    aliases: tuple[str, ...] = ()
    size: int = 0
    on_disk: int = 0
    simulated: bool = False
    shape: ModelShape | None = None
    stated: Stated | None = None
    kind: ModelKind = ModelKind.CHAT

    @property
    def label(self) -> str:
        return self.id or self.path


@dataclass(frozen=True, slots=True)
class Mod:
    """Files that are put into the container, and one of them that runs there before the engine.

    files: relative path -> content; binary content is `base64:...`. script: the file that runs, '' if they are only
    put there. origin: where it comes from, '' if unknown. approved: the digest of what its owner has read.
    """

    name: str
    files: Mapping[str, str] = field(default_factory=dict)
    script: str = "run.sh"
    origin: str = ""
    approved: str = ""

    @property
    def is_code(self) -> bool:
        """True if it runs a script, or holds more than templates, which engines render in a sandbox."""
        return bool(self.script) or not all(name.endswith((".jinja", ".j2")) for name in self.files)

    @property
    def digest(self) -> str:
        """12 hex digits over what runs: name, script and files."""
        content = json.dumps([self.name, self.script, sorted(self.files.items())], ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """name: as in the catalog of engines. version: exact. image: reference (by digest or tag), docker runtime.

    venv: a folder with bin/python, process runtime; empty: what is on the node's PATH.
    extra_env, extra_flags: variables and options that the image's own build adds to that version; variant: names of
    known forks that add theirs, joined by `+`. definition: of an
    engine that does not ship. memory: bytes that a rank takes in all, as the recipe's author says; 0: not said.
    """

    name: str
    version: str
    runtime: Runtime = Runtime.DOCKER
    image: str = ""
    image_note: str = ""
    venv: str = ""
    entrypoint: tuple[str, ...] | None = None
    extra_env: tuple[str, ...] = ()
    extra_flags: tuple[str, ...] = ()
    variant: str = ""
    definition: EngineDefinition | None = None
    memory: int = 0

    @property
    def program(self) -> tuple[str, ...]:
        """The entrypoint as it is started: what follows `sh -c TEXT` is `$@` in the text, so a name stands before."""
        words = self.entrypoint or ()
        return (*words, words[0]) if self.shell_text and len(words) == _SHELL_WORDS else words

    @property
    def shell_text(self) -> str:
        """TEXT of an entrypoint `sh -c TEXT`, '' for any other."""
        words = self.entrypoint or ()
        shell = len(words) >= _SHELL_WORDS and words[0].rpartition("/")[2] in _SHELLS
        return words[2] if shell and words[1].startswith("-") and words[1].endswith("c") else ""

    @property
    def label(self) -> str:
        """`vllm 0.21.0`; the name alone where no version is given."""
        return f"{self.name} {self.version}".rstrip()

    FORMER_VALUES: ClassVar[Mapping[str, Mapping[str, str]]] = {"name": {"twin": "simulator"}}


@dataclass(frozen=True, slots=True)
class Parallelism:
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: bool = False

    @property
    def world_size(self) -> int:
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway on the head node. certificate, key: files there, for tls `files`.

    names: more names that clients use for the head, for its own CA's certificate. body_limit: bytes of one request.
    routes: `METHOD /v1/path`, served besides those of the engine.
    """

    port: int = 8443
    tls: GatewayTls = GatewayTls.INTERNAL
    certificate: str = ""
    key: str = ""
    names: tuple[str, ...] = ()
    body_limit: int = 64 * MIB
    routes: tuple[str, ...] = ()
    end_loops: bool = False
    reasoning_tokens: int = 0
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Serving:
    """Limits of the endpoint. Tokens are counts; memory_fraction is of the whole pool; kv_cache_bytes pins the KV.

    host_cache: bytes of each node's host memory in which the engine keeps prefixes that its KV cache has no room for.

    queue: requests that may wait for a place among `sequences`; more are refused at once. 0: no limit.

    disk_cache: a folder on each node for KV that the engine's next start reads, '' for none; disk_cache_size: bytes.

    remember: bytes of clients' prompts that are kept encrypted on the head for the engine's next start, 0 for none,
    each for remember_hours after its last use.

    coherence: after each start the model's answers to easy questions are judged.

    replicas: groups of nodes that each serve the whole model behind the one gateway.

    on_demand: stopped after idle_minutes without a request, started by the next, which waits for wait_seconds at most.
    """

    port: int = 8000
    master_port: int = 25000
    expose: Expose = Expose.LOOPBACK
    context: int = 0
    sequences: int = 0
    queue: int = 0
    batched_tokens: int = 0
    kv_dtype: str = ""
    memory_fraction: float = 0.0
    kv_cache_bytes: int = 0
    api_key_env: str = ""
    host_cache: int = 0
    disk_cache: str = ""
    disk_cache_size: int = 0
    remember: int = 0
    remember_hours: float = 24.0
    coherence: bool = True
    replicas: int = 1
    on_demand: bool = False
    idle_minutes: float = 15.0
    wait_seconds: float = 600.0
    gateway: Gateway = field(default_factory=Gateway)

    FORMER: ClassVar[Mapping[str, str]] = {"door": "gateway"}


@dataclass(frozen=True, slots=True)
class Speculation:
    """draft: dimensions of a draft model of its own, None while nobody has read its config.json."""

    method: str = ""
    tokens: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    draft: ModelShape | None = None


@dataclass(frozen=True, slots=True)
class Parsers:
    tool: str = ""
    reasoning: str = ""
    tokenizer_mode: str = ""
    chat_template: str = ""


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Usual seconds of a phase and after how many seconds without progress it counts as stuck (0: engine's default)."""

    usual: float = 0.0
    stuck_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Loading:
    """guard: memory of the nodes is watched while weights load. floor: bytes of MemAvailable below which all ranks are

    stopped, 0: from the plan. drop_caches: before the load, also as root, where that is allowed. weight_cache: a
    process of its own keeps the weights in GPU memory, and a relaunch of the ranks maps them.
    """

    guard: bool = True
    floor: int = 0
    drop_caches: bool = False
    weight_cache: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A published number with its source and conditions, as printed there."""

    what: str
    value: float
    unit: str
    source: str
    conditions: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    name: str
    title: str
    model: Model
    engine: EngineChoice
    nodes: int = 1
    profile: str = ""
    profiles: tuple[str, ...] = ()
    state: RecipeState = RecipeState.DOCUMENTED
    state_reason: str = ""
    instead: str = ""
    license_note: str = ""
    conditions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    parallelism: Parallelism = field(default_factory=Parallelism)
    serving: Serving = field(default_factory=Serving)
    speculation: Speculation = field(default_factory=Speculation)
    parsers: Parsers = field(default_factory=Parsers)
    env: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    mounts: tuple[str, ...] = ()
    mods: tuple[Mod, ...] = ()
    shm_bytes: int = 0
    build: Build | None = None
    loading: Loading = field(default_factory=Loading)
    phases: Mapping[str, PhaseTime] = field(default_factory=dict)
    published: tuple[Figure, ...] = ()
    gates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""
    hash: str = ""

    @property
    def label(self) -> str:
        """The name to ask for it by: `NAME` or `NAME@PROFILE`."""
        return f"{self.name}@{self.profile}" if self.profile else self.name

    @property
    def asked(self) -> str:
        """The argument with which `plan` and `up` find it again: the path if it came from one, else the label."""
        kept = not self.source or self.source.startswith("shipped/") or "/sparkwright/recipes/" in self.source
        return self.label if kept else f"{self.source}@{self.profile}" if self.profile else self.source

    @property
    def deployment(self) -> str:
        """The name that its deployment gets unless the user gives one."""
        return self.name
