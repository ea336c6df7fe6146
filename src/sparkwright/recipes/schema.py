"""The recipe as it is written: pydantic models, used at this border only. reference.yaml explains every key."""

from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from sparkwright.domain.deployment import Phase
from sparkwright.domain.model import ModelShape
from sparkwright.domain.replica import MOST_REPLICAS
from sparkwright.recipes.engine_schema import NAME as ENGINE_NAME
from sparkwright.recipes.engine_schema import ROUTE, DescribedPart
from sparkwright.recipes.values import Matching, Part, Seconds, Size, Text, Within

GIB = 1024**3

_PORT = Within(1024, 65535, "ports below 1024 belong to root, and TCP ends at 65535")
_PARALLEL = Within(1, 64, "each rank needs a GPU of its own, and a GB10 node has one")
_FRACTION = Within(
    0.05,
    0.92,
    "it is a share of the whole 121.6 GiB that CPU and GPU have in common, and the system needs 8 to 10 GiB of it "
    "(NVCheckup's sizing rule); on two nodes 0.80 to 0.82 is the practical most, 0.85 left 1 GB a node (GanyX19)",
    zero=True,
)
_CONTEXT = Within(128, 16_777_216, "fewer tokens hold no chat template, more than 16 Mi no known model has", zero=True)
_QUEUE = Within(1, 65536, "requests that wait hold their prompts in memory", zero=True)
_SEQUENCES = Within(1, 4096, "each sequence has its own state and CUDA graph slots", zero=True)
_BATCHED = Within(64, 1_048_576, "tokens of one engine step; activations grow with it", zero=True)
_KV_BYTES = Within(64 * 1024**2, 112 * GIB, "a node has 121.6 GiB in all, and weights come first", zero=True)
_HOST_CACHE = Within(GIB, 64 * GIB, "on a GB10 it is taken from the memory that weights and KV are in", zero=True)
_SHM = Within(64 * 1024**2, 121 * GIB, "NCCL needs it (64g is proven), and a node has 121.6 GiB in all", zero=True)
_MEMORY = Within(64 * 1024**2, 121 * GIB, "it is what one rank takes of a node, which has 121.6 GiB in all", zero=True)
_BODY = Within(64 * 1024, 4 * GIB, "a chat with pictures needs megabytes, and each is held in memory")
_DISK_CACHE = Within(GIB, 64 * 1024 * GIB, "one long context of a large model takes gigabytes", zero=True)
_REMEMBER = Within(1024**2, 4 * GIB, "1 MiB holds a context of about 250,000 tokens", zero=True)
_REMEMBER_HOURS = Within(0.1, 720, "texts of clients are not kept for longer than a month")
_IDLE = Within(0.1, 10_080, "a start takes minutes, and after a week without a request nobody waits for the next")
_ANSWER = Within(16, 10_000_000, "a shorter one cuts answers that nobody calls long", zero=True)
_REASONING = Within(100, 10_000_000, "a shorter one ends answers that only think a little", zero=True)
_WAIT = Within(1, 3600, "no client waits for longer than an hour, and OpenAI's own for ten minutes")
_DRAFT = Within(1, 32, "each drafted token is verified in the same step")
_REPLICAS = Within(1, MOST_REPLICAS, "each replica has nodes of its own, and larger fleets have engines made for them")
_NODES = Within(1, 64, "more nodes than anybody has wired up")
_JOBS = Within(1, 256, "each compiler of CUDA code takes gigabytes; 16 is proven on a GB10 (GanyX19)", zero=True)
_COUNT = Within(1, 10_000_000, "it is a count or a width of a model's parts", zero=True)
_NUMBERS = Within(1, 10_000_000_000_000, "it is a count of a model's numbers", zero=True)
_SOME = Within(1, 10_000_000, "it is a count of a model's parts, and every model has some")

_ENV_NAME = Matching(r"[A-Za-z_][A-Za-z0-9_]*", "the NAME of an environment variable, never the key itself", hide=True)
_NAME = Matching(
    r"[a-z0-9][a-z0-9._-]{0,62}", "small letters, digits, `.`, `_` and `-`, at most 63, as in deepseek-v4-flash"
)
_HUB_ID = Matching(r"[\w.-]+/[\w.-]+", "a hub id `organisation/name`; a folder or file goes into `model.path`")
_VARIABLE = Matching(r"[A-Z][A-Z0-9_]*", "the name of a variable, as in VLLM_USE_B12X_MOE")
_OPTION = Matching(
    r"[A-Za-z0-9][\w-]*(\.[\w-]+)?",
    "the name of an option without dashes before it, as in block-size, or `option.key` of a JSON option",
)
_WORD = Matching(r"\S+", "one word without spaces")
_VERSION = Matching(
    r"[vb]?\d+(\.\d+)*([abc]|rc|\.?dev|\.?post|-)?[\w.+-]*|latest|nightly|main|master|dev",
    "one version, as in 0.21.0, b10269 or nightly; leave it out to have it read from the image or venv at `up`",
)
_COMMIT = Matching(r"[0-9a-f]{40}", "the full hash of one commit, 40 hex digits; branches and tags move")
_REPOSITORY = Matching(r"(https|git|file)://\S+", "a URL that git can fetch from, as in https://github.com/org/name")
_URL = Matching(r"https?://\S+", "the URL of a package index")
_ARCH = Matching(r"\d+\.\d[af]?( \d+\.\d[af]?)*", "CUDA capabilities as PyTorch writes them; GB10 is 12.1a")
_PINNED = Matching(
    r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[\w.!+-]+( --hash=sha256:[0-9a-f]{64})*",
    "`name==version`, with ` --hash=sha256:...` where it is known",
)
_PACKAGE = Matching(r"[a-z0-9][a-z0-9.+-]*(=[\w.:~+-]+)?", "a package of the distribution, `name` or `name=version`")
_FOLDER = Matching(r"(?!/)(?!.*\.\.)[\w./-]+", "a folder in the source, without `..`")
_MOUNT = Matching(
    r"(/|~/)[^:]*:/[^:]*(:ro|:rw)?",
    "HOST:CONTAINER or HOST:CONTAINER:ro with absolute paths, as in ~/patches:/patches:ro",
)
_MOD = Matching(r"[A-Za-z0-9][\w.+-]{0,80}", "letters, digits, `.`, `_`, `+` and `-`, as in fix-chat-template")
_SCRIPT = Matching(
    r"(?:(?!/)(?!.*\.\.)[\w./+@-]{1,200})?", "a path inside the mod, without `..`, as in run.sh; '' for none"
)
_VARIANT = Matching(r"[a-z0-9-]{1,40}(\+[a-z0-9-]{1,40}){0,4}", "a known fork, as in b12x; several are joined by `+`")
_DIGEST = Matching(r"[0-9a-f]{12}", "12 hex digits, as the finding about the mod shows them")
_PATH = Matching(r"[^\s:][^\n:]*", "a path on the nodes without `:`")
_ABSOLUTE = Matching(r"/[^\n:]*", "an absolute path on the head node")
_HOST = Matching(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?", "a host name or an address, without port")
_AT_HOME = Matching(r"(/|~/)[^\n:]*", "an absolute path, or one that begins with ~/")


# domain.model.ModelShape, key by key: by the field's name, else by its type.
_BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("layers", "heads", "kv_heads"), Annotated[int, _SOME]),
    **dict.fromkeys(
        ("format", "expert_format", "output_format"),
        Literal["", "fp32", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"],
    ),
    "state_format": Literal["", "fp32", "bf16"],
    "table_format": Literal["", "bf16", "fp8", "mxfp8", "nvfp4"],
    "activations": Literal[0, 4, 8, 16],
    "kv_format": Literal["", "fp8", "nvfp4"],
    "tables": Annotated[int, _NUMBERS],
}
_BY_TYPE: dict[Any, Any] = {
    int: Annotated[int, _COUNT],
    str: Annotated[Text, _WORD],
    bool: bool,
    tuple[int, ...]: list[Annotated[int, _COUNT]],
}
_SHAPE: dict[str, Any] = {
    one.name: (
        _BY_NAME.get(one.name, _BY_TYPE.get(one.type)),
        ... if one.default is MISSING else [] if one.default == () else one.default,
    )
    for one in fields(ModelShape)
}
ShapePart = create_model("ShapePart", __base__=Part, **_SHAPE)


class StatedPart(Part):
    parameters: Annotated[int, _NUMBERS] = 0
    active: Annotated[int, _NUMBERS] = 0
    dtype: Annotated[Text, _WORD] = ""
    kv_dtype: Annotated[Text, _WORD] = ""
    memory: Size = 0
    weights: Size = 0
    kv_bytes: Annotated[int, _COUNT] = 0
    layers: Annotated[int, _COUNT] = 0
    heads: Annotated[int, _COUNT] = 0
    kv_heads: Annotated[int, _COUNT] = 0
    head_dim: Annotated[int, _COUNT] = 0
    by: Text = ""


class ModelPart(Part):
    id: Annotated[Text, _HUB_ID] = ""
    revision: Annotated[Text, _WORD] = ""
    path: Annotated[Text, _PATH] = ""
    served_name: Annotated[Text, _WORD] = ""
    aliases: list[Annotated[Text, _WORD]] = []
    size: Size = 0
    on_disk: Size = 0
    simulated: bool = False
    kind: Literal["chat", "embedding", "rerank", "transcription"] = "chat"
    shape: ShapePart | None = None
    stated: StatedPart | None = None


class EnginePart(Part):
    name: Annotated[Text, ENGINE_NAME]
    version: Annotated[Text, _VERSION] = ""
    runtime: Literal["docker", "process"] = "docker"
    image: Annotated[Text, _WORD] = ""
    image_note: Text = ""
    venv: Annotated[Text, _AT_HOME] = ""
    entrypoint: list[Text] | None = None
    extra_env: list[Annotated[Text, _VARIABLE]] = []
    extra_flags: list[Annotated[Text, _OPTION]] = []
    variant: Annotated[Text, _VARIANT] = ""
    memory: Annotated[Size, _MEMORY] = 0
    command: list[Text] = []
    definition: DescribedPart | None = None


class ModPart(Part):
    name: Annotated[Text, _MOD]
    files: dict[str, Text] = {}
    script: Annotated[Text, _SCRIPT] = "run.sh"
    origin: Text = ""
    approved: Annotated[Text, _DIGEST] = ""


class ParallelismPart(Part):
    tp: Annotated[int, _PARALLEL] = 1
    pp: Annotated[int, _PARALLEL] = 1
    dp: Annotated[int, _PARALLEL] = 1
    ep: bool = False


class GatewayPart(Part):
    port: Annotated[int, _PORT] = 8443
    tls: Literal["internal", "files", "off"] = "internal"
    certificate: Annotated[Text, _ABSOLUTE] = ""
    key: Annotated[Text, _ABSOLUTE] = ""
    names: list[Annotated[Text, _HOST]] = []
    body_limit: Annotated[Size, _BODY] = 64 * 1024**2
    routes: list[Annotated[Text, ROUTE]] = []
    end_loops: bool = False
    reasoning_tokens: Annotated[int, _REASONING] = 0
    answer_tokens: Annotated[int, _ANSWER] = 0


class ServingPart(Part):
    port: Annotated[int, _PORT] = 8000
    master_port: Annotated[int, _PORT] = 25000
    expose: Literal["loopback", "fabric", "all"] = "loopback"
    api_key_env: Annotated[Text, _ENV_NAME] = ""
    context: Annotated[int, _CONTEXT] = 0
    sequences: Annotated[int, _SEQUENCES] = 0
    queue: Annotated[int, _QUEUE] = 0
    batched_tokens: Annotated[int, _BATCHED] = 0
    kv_dtype: Annotated[Text, _WORD] = ""
    memory_fraction: Annotated[float, _FRACTION] = 0.0
    kv_cache_bytes: Annotated[Size, _KV_BYTES] = 0
    host_cache: Annotated[Size, _HOST_CACHE] = 0
    disk_cache: Annotated[Text, _ABSOLUTE] = ""
    disk_cache_size: Annotated[Size, _DISK_CACHE] = 0
    remember: Annotated[Size, _REMEMBER] = 0
    remember_hours: Annotated[float, _REMEMBER_HOURS] = 24.0
    coherence: bool = True
    replicas: Annotated[int, _REPLICAS] = 1
    on_demand: bool = False
    idle_minutes: Annotated[float, _IDLE] = 15.0
    wait_seconds: Annotated[float, _WAIT] = 600.0
    gateway: GatewayPart = GatewayPart()


class SpeculationPart(Part):
    method: Annotated[Text, _WORD]
    tokens: Annotated[int, _DRAFT]
    options: dict[str, Any] = Field(default_factory=dict)


class ParsersPart(Part):
    tool: Annotated[Text, _WORD] = ""
    reasoning: Annotated[Text, _WORD] = ""
    tokenizer_mode: Annotated[Text, _WORD] = ""
    chat_template: Annotated[Text, _PATH] = ""


class PythonPackagesPart(Part):
    packages: list[Annotated[Text, _PINNED]]
    index: Annotated[Text, _URL] = ""


class SourcePart(Part):
    name: Annotated[Text, _NAME]
    repository: Annotated[Text, _REPOSITORY]
    commit: Annotated[Text, _COMMIT]
    pull_request: Annotated[int, _COUNT] = 0
    version: Annotated[Text, _VERSION] = ""
    folder: Annotated[Text, _FOLDER] = "."
    prepare: list[Text] = []


class BuildPart(Part):
    base: Annotated[Text, _WORD]
    unpinned: Text = ""
    platform: Literal["linux/arm64", "linux/amd64"] = "linux/arm64"
    cuda_arch: Annotated[Text, _ARCH] = "12.1a"
    jobs: Annotated[int, _JOBS] = 0
    packages: list[Annotated[Text, _PACKAGE]] = []
    python: list[PythonPackagesPart] = []
    sources: list[SourcePart] = []
    env: dict[str, Text] = {}
    steps: list[Text] = []


class LoadingPart(Part):
    guard: bool = True
    floor: Size = 0
    drop_caches: bool = False
    weight_cache: bool = False


class PhasePart(Part):
    usual: Seconds = 0.0
    stuck_after: Seconds = 0.0


_PHASES: dict[str, Any] = {phase.value: (PhasePart, PhasePart()) for phase in Phase}
PhasesPart = create_model("PhasesPart", __base__=Part, **_PHASES)


class FigurePart(Part):
    what: Text
    value: float
    unit: Text
    source: Text
    conditions: Text = ""


class RecipePart(Part):
    """A recipe with one profile laid over it; `profiles` and `default_profile` are gone by then."""

    name: Annotated[Text, _NAME] = ""
    title: Text
    state: Literal["ready", "documented", "refused"] = "documented"
    state_reason: Text = ""
    instead: Annotated[Text, _NAME] = ""
    license: Text = ""
    conditions: list[Text] = []
    references: list[Text] = []
    model: ModelPart
    engine: EnginePart
    nodes: Annotated[int, _NODES] = 1
    parallelism: ParallelismPart = ParallelismPart()
    serving: ServingPart = ServingPart()
    speculation: SpeculationPart | None = None
    parsers: ParsersPart = ParsersPart()
    env: dict[str, Text] = {}
    flags: dict[str, Any] = {}
    mounts: list[Annotated[Text, _MOUNT]] = []
    mods: list[ModPart] = []
    shm: Annotated[Size, _SHM] = 0
    build: BuildPart | None = None
    loading: LoadingPart = LoadingPart()
    phases: PhasesPart = PhasesPart()
    published: list[FigurePart] = []
    gates: list[Text] = []
    notes: list[Text] = []


class RecipeFile(RecipePart):
    """The whole file. Each profile is a mapping of the same keys, laid over the base."""

    default_profile: Text = ""
    profiles: dict[str, dict[str, Any]] = {}
