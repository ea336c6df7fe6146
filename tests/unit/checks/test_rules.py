"""Each rule: where it fires, and where it must be silent."""

from dataclasses import replace

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Defect, Published
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.facts import (
    NOT_ASKED,
    Disk,
    Docker,
    DockerTrouble,
    Driver,
    Gpu,
    GpuProcess,
    Identity,
    Unknown,
)
from sparkwright.domain.finding import Severity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import Advice, Split
from sparkwright.domain.recipe import EngineChoice, Parallelism, Recipe, RecipeState, Runtime, Serving, Speculation
from sparkwright.domain.units import GIB, MIB
from sparkwright.planner.ledger import ledger
from unit.checks.samples import (
    ABSENT,
    BY_PATH,
    CLUSTER,
    DENSE,
    EMBEDDED,
    INDEX,
    NODES,
    ODD,
    OTHERS,
    PLAYED,
    READY,
    RECIPE,
    SHARD,
    WHOLE,
    context,
    flawed,
    healthy,
    make_disk,
    memory,
    rank_specs,
    rank_status,
    run_check,
    taken_port,
)
from unit.for_each import for_each

NONE = Docker("", trouble=DockerTrouble.NOT_INSTALLED)
STOPPED = Docker("", trouble=DockerTrouble.NOT_RUNNING, said="Cannot connect to the Docker daemon")
FORBIDDEN = Docker("", trouble=DockerTrouble.NO_RIGHTS)
PLAIN = replace(READY, runtimes=("runc",))
TIGHT = replace(READY, can_raise_memlock=False)
AS_PROCESS = replace(RECIPE, engine=EngineChoice("vllm", "0.21.0", Runtime.PROCESS))
ON_CPU = replace(RECIPE, engine=EngineChoice("llama-cpp", "1", Runtime.DOCKER, "registry/llama:1"))
NO_GPU = {"gpus": Unknown("No devices were found", "nvidia-smi exited 6")}
H200 = (Gpu("NVIDIA H200", "570.1", "9.0", 1),)
HOLDER = (GpuProcess(4711, "/usr/bin/ollama", 9 * GIB),)
PARTIAL = replace(WHOLE, bytes=10 * GIB, missing=("a (in the index)", "b (in the index)", "c (empty)", "d (broken)"))
SAME_ID = Identity("spark-1", f"{2:032x}", "aarch64", "boot-1", "ai", "/home/ai")
TWICE = Identity("spark-2", f"{2:032x}", "aarch64", "boot-2", "ai", "/home/ai")
LOCAL = replace(CLUSTER, nodes=tuple(Node(name, "local") for name in NODES))
SHAPE = ModelShape(36, 32, 8, experts=64)
SHAPED = replace(RECIPE, model=replace(RECIPE.model, shape=SHAPE))


def split_context(tp: int, *against: str) -> Context:
    """The recipe wants tp nodes; tp 2 works on two."""
    own, other = Split(Parallelism(tp), against), Split(Parallelism(1, tp))
    return context(advice=Advice("config.json on spark-1", splits=(own, other)))


def limits(**serving: object) -> Context:
    return context(recipe=replace(RECIPE, serving=Serving(**serving)))  # type: ignore[arg-type]


def long_context(tokens: int, **serving: object) -> Context:
    """A model of 15 GiB of weights and 65,536 bytes a token on each of two ranks, with a context of so many tokens."""
    model = replace(RECIPE.model, shape=DENSE, size=0)
    made = replace(RECIPE, model=model, serving=Serving(context=tokens, **serving))  # type: ignore[arg-type]
    return context(recipe=made, ledgers=tuple(ledger(made, healthy(name), None, 2, "big") for name in NODES))


_ALLOWED = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
_YARN = {"rope_parameters": {"rope_type": "yarn", "factor": 4}}


def beyond(**changes: object) -> Recipe:
    """A context of twice what the model was made for."""
    model = replace(RECIPE.model, shape=replace(DENSE, positions=131072))
    return replace(RECIPE, model=model, serving=Serving(context=262144), **changes)  # type: ignore[arg-type]


def drafting(layers: int, method: str = "mtp") -> Recipe:
    """Drafts of a model with so many layers for them."""
    model = replace(RECIPE.model, shape=replace(DENSE, mtp_layers=layers))
    return replace(RECIPE, model=model, speculation=Speculation(method=method, tokens=2))


def cached(mount: str, total: int, free: int) -> Context:
    """A KV cache of 200 GiB in /data/kv, on a disk of so many GiB."""
    serving = replace(RECIPE.serving, disk_cache="/data/kv", disk_cache_size=200 * GIB)
    seen = Disk("/data/kv", mount, total * GIB, free * GIB)
    return context({"disks": (seen,)}, replace(RECIPE, serving=serving))


TOO_SMALL = Advice(too_small=(("spark-1", "the files at /models/big hold 42,000,000 bytes"),))
SIZED = replace(RECIPE, model=replace(RECIPE.model, size=16 * GIB))
UNSIZED = replace(RECIPE, model=replace(RECIPE.model, size=0))

FIRING = {
    "REC001": context(recipe=replace(RECIPE, state=RecipeState.REFUSED, state_reason="no sm_121 build")),
    "REC002": context(recipe=replace(RECIPE, state=RecipeState.DOCUMENTED)),
    "HOST001": context({"identity": SAME_ID}),
    "HOST002": context({"identity": TWICE}),
    "DRV001": context({"driver": Driver("590.48.01", "590.48.01")}),
    "DRV002": context({"driver": Driver("570.133.20", "570.133.20")}),
    "DRV003": context({"driver": Driver("580.173.02", "580.159.03")}),
    "GPU001": context(NO_GPU),
    "GPU002": context({"gpu_processes": HOLDER}),
    "DOCK001": context({"docker": STOPPED}),
    "DOCK002": context({"docker": FORBIDDEN}),
    "DOCK003": context({"docker": PLAIN}),
    "DOCK004": context({"docker": TIGHT}),
    "MODEL001": context(recipe=BY_PATH, checkpoints={"spark-1": PARTIAL, "spark-2": ABSENT}),
    "MODEL002": context(recipe=BY_PATH, checkpoints=OTHERS),
    "MODEL003": context(
        recipe=SHAPED, checkpoints={"spark-1": replace(WHOLE, shape=replace(SHAPE, layers=40, experts=128))}
    ),
    "MODEL004": flawed(Defect.UNFINISHED, "blobs/abc.incomplete", "unfinished download"),
    "MODEL005": flawed(Defect.REF, "refs/main", "ends with a newline"),
    "MODEL006": flawed(Defect.SHORT, SHARD, "cut short: 3.0 GiB of the 4.0 GiB that its header promises"),
    "MODEL007": flawed(Defect.NO_INDEX, INDEX, "absent beside 46 shards"),
    "MODEL008": flawed(Defect.SUM, INDEX, "names 7 tensors, the shards hold 6"),
    "MODEL009": flawed(Defect.MANY_INDEXES, "", f"{INDEX}, other.index.json; engines load what {INDEX} names"),
    "MODEL010": flawed(Defect.CONFIG, "config.json", "config.json is no JSON"),
    "MODEL011": context(checkpoints={"spark-1": replace(WHOLE, doubts=("keys that are not understood here: ring",))}),
    "MODEL012": replace(context(checkpoints=OTHERS), published=Published("org/big", "main", "{}", 9)),
    "MODEL013": context(recipe=beyond(), checkpoints={}),
    "MODEL014": context(advice=Advice(contradictions=("model.size 16 GiB; at least 1,229 GiB of GPU memory",))),
    "MODEL015": context(recipe=SIZED, advice=TOO_SMALL),
    "MODEL016": context(recipe=drafting(0), checkpoints={}),
    "PAR001": split_context(3, "tp 3 does not divide 32 query heads"),
    "DISK001": context({"disks": (make_disk("~/.cache/huggingface/hub", 100),)}, checkpoints={"spark-1": ABSENT}),
    "DISK005": cached("/data", 500, 150),
    "MEM001": limits(memory_fraction=0.55),
    "MEM002": context({"memory": memory(40)}),
    "MEM003": long_context(1 << 20, memory_fraction=0.3),
    "MEM021": long_context(360448, memory_fraction=0.3),
    "RANK001": context({"ranks": (rank_status("old"),)}),
    "RANK002": replace(context({"ranks": (rank_status("old"),)}), beside=("old",)),
    "PORT001": context(taken_port("127.0.0.1")),
}

MESSAGES = {
    "PORT001": (
        "block",
        "rank 0 on spark-1",
        "port 8000 is in use by uvicorn",
        "ss: 127.0.0.1:8000 uvicorn; expected: 127.0.0.1:8000",
        "something listens there already, and two cannot",
        "stop it (on spark-1: sudo ss -ltnp 'sport = :8000'), or set another serving.port",
    ),
    "DISK001": (
        "block",
        "spark-1",
        "no room for weights on /",
        "weights 138.8 GiB, with 5 % + 2 GiB to spare: 147.7 GiB needed, 100.0 GiB free on /",
        "the node lacks them, and they would be copied or fetched there before the start",
        "make room (du -xh --max-depth=2 / | sort -h | tail), "
        "or write another folder into the node's paths in the cluster file",
    ),
    "MEM001": (
        "override",
        "spark-1",
        "no memory left for the KV cache",
        "121.6 GiB pool - 9.0 GiB in use now - 69.4 GiB weights - 2.0 GiB engine's processes - 0.5 GiB communication "
        "buffers - 1.7 GiB CUDA kernels - 3.2 GiB activations - 1.7 GiB CUDA graphs - 0.0 MiB KV pool = 34.1 GiB",
        "weights and the engine's own needs take all that it may take",
        "serving.memory_fraction: 0.64 or more; or more nodes than 2; or a smaller checkpoint of the model",
    ),
    "MEM002": (
        "override",
        "spark-1",
        "memory fraction 0.80 exceeds free memory",
        "0.80 x 121.6 GiB = 97.3 GiB needed, 81.6 GiB free now (40.0 GiB in use: 121.6 GiB total - 81.6 GiB available)",
        "other processes hold memory of the one pool that CPU and GPU share",
        "serving.memory_fraction: 0.67; or stop what holds it (on spark-1: ps aux --sort=-rss | head)",
    ),
    "MEM003": (
        "override",
        "spark-1",
        "KV cache is too small for one sequence of 1,048,576 tokens",
        "64.0 GiB needed, 23.3 GiB in the pool (16.0 GiB to 27.3 GiB): 0.30 x 121.6 GiB - 7.7 GiB weights - 1.7 GiB "
        "CUDA kernels - 1.8 GiB activations - 1.9 GiB CUDA graphs",
        "weights and the engine's own needs leave too little for so long a context",
        "serving.context: 339968 or less; or serving.kv_dtype: fp8; or serving.memory_fraction: 0.64",
    ),
    "MODEL001": (
        "block",
        "spark-1",
        "big is incomplete: files are missing",
        "/hub/big: a (in the index), b (in the index), c (empty) and 1 more",
        "a download or copy was not finished, and no other node has the rest",
        "copy the missing files into /hub/big/snapshots/1 on one node",
    ),
    "MODEL002": (
        "block",
        "big",
        "big not found on any node",
        "looked on spark-1, spark-2: nothing at ~/models/big",
        "the recipe names a path, and the model was not put there, or under another name",
        "put the model at ~/models/big on one node, or change model.path in the recipe",
    ),
    "MODEL003": (
        "warn",
        "spark-1",
        "model.shape does not match config.json",
        "layers 36 in the recipe, 40 in the file; experts 64 in the recipe, 128 in the file",
        "model.shape was written for another model or release; the file is what counts",
        "fix model.shape, or check model.id, model.revision and what lies at the path",
    ),
    "PAR001": (
        "override",
        "big",
        "tp 3 is not possible for this model",
        "tp 3 does not divide 32 query heads (config.json on spark-1)",
        "vllm would refuse it after the ranks have started",
        "parallelism: {tp: 1, pp: 3, dp: 1, ep: false}",
    ),
    "DOCK002": (
        "block",
        "spark-1",
        "ai has no permission on the Docker socket",
        "the daemon's socket is not writable for this user",
        "ai is not in the group docker, or was added to it after logging in",
        "sudo usermod -aG docker ai   # then log in to the node again; the group is as good as root",
    ),
    "RANK001": (
        "override",
        "spark-1",
        "deployment old runs on this node",
        "rank 0 of 2 (other), docker sparkwright-old-rank0",
        "it is still starting, has failed, or was started with --no-supervise",
        "wait until it serves (sparkwright status), sparkwright down old, or `up` with `--replace old`",
    ),
    "GPU002": (
        "warn",
        "spark-1",
        "GPU memory in use by ollama",
        "/usr/bin/ollama (pid 4711) 9.0 GiB",
        "another engine or program shares the one memory pool",
        "stop it: sudo kill 4711   # first see whose it is: ps -fp PID",
    ),
    "GPU001": (
        "override",
        "spark-1",
        "no GPU detected",
        "nvidia-smi: No devices were found",
        "the machine has no NVIDIA GPU, its driver is not loaded, or the GPU did not start",
        "sudo dmesg | grep -iE 'nvrm|xid' on the node; a recipe for the CPU is tiny-llama-cpp",
    ),
    "DRV001": (
        "override",
        "spark-1",
        "driver 590.48.01 deadlocks in CUDA graph capture",
        "kernel module 590.48.01; expected: 580.142 or a later paired 580",
        "CUDA-graph capture hangs on 590.x and 595.x with GB10, without an error line",
        "install the driver that DGX OS pairs: the update of the DGX Dashboard (http://localhost:11000), then reboot",
    ),
}

SILENT = [
    ("REC001", "documented is no refusal", FIRING["REC002"]),
    ("REC002", "ready is served", context()),
    ("HOST001", "ids differ", context()),
    ("HOST001", "one machine twice is another defect", context({"identity": TWICE})),
    ("HOST001", "simulated nodes are one machine", context({"identity": SAME_ID}, cluster=EMBEDDED)),
    ("HOST002", "one name and another boot", context({"identity": replace(TWICE, boot_id="boot-9")})),
    ("HOST002", "system containers share a boot id", context({"identity": replace(SAME_ID, boot_id="boot-2")})),
    ("HOST002", "local means this machine", context({"identity": TWICE}, cluster=LOCAL)),
    ("HOST002", "simulated nodes are one machine", context({"identity": TWICE}, cluster=EMBEDDED)),
    ("DRV001", "580 is right", context()),
    ("DRV001", "610 is another branch", context({"driver": Driver("610.43", "610.43")})),
    ("DRV001", "the twin needs no driver", context({"driver": Driver("590.1", "590.1")}, PLAYED)),
    ("DRV001", "no version", context({"driver": Driver(ODD, ODD)})),
    ("DRV002", "580.95 is old and works", context({"driver": Driver("580.95.05", ODD)})),
    ("DRV002", "not a GB10", context({"driver": Driver("570.1", "570.1"), "gpus": H200})),
    ("DRV003", "firmware not told", context({"driver": Driver("580.142", ODD)})),
    ("GPU001", "not asked", context({"gpus": NOT_ASKED})),
    ("GPU001", "no rank takes it", context(NO_GPU, specs=rank_specs(gpu=False))),
    ("GPU001", "check has no plan", context(NO_GPU, recipe=None)),
    ("GPU002", "a desktop's few MiB", context({"gpu_processes": (GpuProcess(9, "Xorg", 43 * MIB),)})),
    ("GPU002", "may be ours", context({"gpu_processes": HOLDER, "ranks": (rank_status("big"),)})),
    ("GPU002", "ours are not known", context({"gpu_processes": HOLDER, "ranks": ODD})),
    ("DOCK001", "processes need no Docker", context({"docker": NONE}, AS_PROCESS)),
    ("DOCK001", "rights are another defect", context({"docker": FORBIDDEN})),
    ("DOCK001", "simulated nodes have none", context({"docker": NONE}, None, cluster=EMBEDDED)),
    ("DOCK002", "no daemon is another defect", context({"docker": STOPPED})),
    ("DOCK003", "CDI does as well", context({"docker": replace(PLAIN, cdi=True)})),
    ("DOCK003", "no rank takes the GPU", context({"docker": PLAIN}, specs=rank_specs(gpu=False))),
    ("DOCK003", "without a daemon nothing is known", context({"docker": STOPPED})),
    ("DOCK004", "not known", context({"docker": replace(READY, can_raise_memlock=ODD)})),
    ("DOCK004", "no RDMA", context({"docker": TIGHT}, specs=rank_specs(rdma=False))),
    ("MODEL001", "one node has all of it", context(recipe=BY_PATH, checkpoints={"spark-1": PARTIAL, "spark-2": WHOLE})),
    ("MODEL001", "the twin loads nothing", context(recipe=PLAYED, checkpoints={"spark-1": PARTIAL})),
    ("MODEL002", "the hub has it", context(checkpoints=OTHERS)),
    ("MODEL002", "one node was not read", context(recipe=BY_PATH, checkpoints={"spark-1": ABSENT, "spark-2": ODD})),
    (
        "MODEL003",
        "what the recipe leaves out is not said",
        context(recipe=SHAPED, checkpoints={"spark-1": replace(WHOLE, shape=replace(SHAPE, hidden=4096))}),
    ),
    (
        "MODEL003",
        "the file does not say how its numbers are written",
        context(
            recipe=replace(SHAPED, model=replace(SHAPED.model, shape=replace(SHAPE, format="fp8"))),
            checkpoints={"spark-1": replace(WHOLE, shape=SHAPE)},
        ),
    ),
    ("MODEL003", "no file yet", context(recipe=SHAPED, checkpoints=OTHERS)),
    ("MODEL003", "a file of an unknown kind", context(recipe=SHAPED, checkpoints={"a": replace(WHOLE, shape=ODD)})),
    *((f"MODEL{n:03}", "the twin loads nothing", replace(FIRING[f"MODEL{n:03}"], recipe=PLAYED)) for n in range(4, 12)),
    ("MODEL001", "fetching the rest mends no damaged file", FIRING["MODEL006"]),
    ("MODEL012", "nobody was asked", context(checkpoints=OTHERS)),
    ("MODEL013", "vLLM's own switch", context(recipe=beyond(env={_ALLOWED: "1"}), checkpoints={})),
    ("MODEL013", "rope scaling by the recipe", context(recipe=beyond(flags={"hf-overrides": _YARN}), checkpoints={})),
    ("MODEL013", "the file says more", context(recipe=beyond(), checkpoints={"spark-1": replace(WHOLE, shape=DENSE)})),
    ("MODEL014", "the statements agree", context(advice=Advice())),
    ("MODEL015", "no stated size: the weights are not known", context(recipe=UNSIZED, advice=TOO_SMALL)),
    ("MODEL015", "the files are whole", context(recipe=SIZED, advice=Advice())),
    ("MODEL016", "it has such layers", context(recipe=drafting(1), checkpoints={})),
    ("MODEL016", "another model drafts", context(recipe=drafting(0, "eagle3"), checkpoints={})),
    ("PAR001", "it works", split_context(2)),
    ("PAR001", "nothing was compared", context()),
    ("DISK001", "it is there", context({"disks": (make_disk("~/.cache/huggingface/hub", 1),)})),
    ("DISK001", "room enough", context(checkpoints=OTHERS)),
    ("DISK005", "a disk of its own with room", cached("/data", 500, 300)),
    ("DISK005", "no such cache", context()),
    ("DISK001", "another folder", context({"disks": (make_disk("~/models", 1),)}, checkpoints=OTHERS)),
    ("MEM001", "fits", context()),
    ("MEM001", "too high a fraction is MEM002", context({"memory": memory(40)})),
    ("MEM001", "the twin takes nothing", context(recipe=PLAYED)),
    ("MEM002", "kept pages are free", context({"memory": memory(85, unexplained=86)})),
    ("MEM002", "the twin takes nothing", context({"memory": memory(120)}, PLAYED)),
    (
        "MEM002",
        "our own rank is replaced",
        context(
            {"memory": memory(100), "ranks": (rank_status("big"),), "gpu_processes": (GpuProcess(7, "VLLM", 90 * GIB),)}
        ),
    ),
    ("MEM003", "long enough", long_context(131072, memory_fraction=0.3)),
    ("MEM003", "an unknown model", context()),
    ("MEM003", "no pool at all is MEM001", long_context(1 << 20, memory_fraction=0.1)),
    ("MEM021", "the low end is enough", long_context(131072, memory_fraction=0.3)),
    ("MEM021", "the high end is too little: MEM003", FIRING["MEM003"]),
    ("RANK001", "the same deployment is replaced", context({"ranks": (rank_status("big"),)})),
    ("RANK001", "both are wanted", replace(context({"ranks": (rank_status("old"),)}), beside=("old",))),
    ("RANK002", "it does not serve", context({"ranks": (rank_status("old"),)})),
    ("RANK001", "it has ended", context({"ranks": (rank_status("old", state="exited"),)})),
    ("PORT001", "another address", context(taken_port("192.168.1.5"))),
    ("PORT001", "another port", context(taken_port("0.0.0.0", 8001))),
    ("PORT001", "IPv6 loopback", context(taken_port("::1"))),
    ("PORT001", "our own rank is replaced", context({**taken_port("127.0.0.1"), "ranks": (rank_status("big"),)})),
    (
        "PORT001",
        "our own worker answers there",
        context({**taken_port("127.0.0.1"), "ranks": (rank_status("big", number=1),)}),
    ),
    ("PORT001", "our own rendezvous", context({**taken_port("192.168.100.1", 25000), "ranks": (rank_status("big"),)})),
]


@for_each("code", FIRING)
def test_rule_fires(code: str) -> None:
    """Guards that the defect is seen, with everything that a user needs to act."""
    findings = run_check(code, FIRING[code])
    assert findings
    for finding in findings:
        assert finding.code == code
        assert all((finding.subject, finding.title, finding.evidence, finding.cause, finding.remedy))
    assert code in [finding.code for finding in check_all(FIRING[code])]


@for_each("code", MESSAGES)
def test_message_is_whole(code: str) -> None:
    """Guards the words: subject, found against expected, cause, and a hint that can be typed."""
    f = run_check(code, FIRING[code])[0]
    assert (f.severity, f.subject, f.title, f.evidence, f.cause, f.remedy) == MESSAGES[code]


@for_each("code, why, where", SILENT, ids=lambda value: value if isinstance(value, str) else "")
def test_rule_is_silent(code: str, why: str, where: Context) -> None:
    """Guards that what looks like the defect and is none is not reported."""
    assert run_check(code, where) == []


def test_a_taken_rendezvous_names_the_deployment_that_meets_there() -> None:
    """Guards `sudo ss` as the only advice where another deployment of the recipe runs."""
    where = context({**taken_port("192.168.100.1", 25000, "python3"), "ranks": (rank_status("other"),)})
    (finding,) = run_check("PORT001", where)
    assert finding.remedy.startswith("sparkwright down other, if it is the rendezvous of its ranks (else stop it")
    assert finding.remedy.endswith("or set another serving.master_port")


def test_healthy_nodes_have_no_findings() -> None:
    """Guards that a good plan on good nodes, and a check of them, report nothing."""
    assert check_all(context()) == ()
    assert check_all(context(recipe=None)) == ()


def test_unfinished_hub_download_is_fetched_and_only_warned_of() -> None:
    """Guards that what `up` itself fixes does not stop it."""
    findings = run_check("MODEL001", context(checkpoints={"spark-1": PARTIAL}))
    assert [(f.severity, f.remedy) for f in findings] == [
        (Severity.WARN, "nothing to do: `up` fetches the rest; by hand: hf download org/big")
    ]


def test_weights_and_image_share_a_disk() -> None:
    """Guards that two copies onto one file system are added up; each alone would have fitted."""
    disks = (make_disk("~/.cache/huggingface/hub", 155), make_disk("/var/lib/docker", 155))
    images = {"spark-1": 0, "spark-2": 20 * GIB}
    checkpoints = {"spark-1": ABSENT, "spark-2": WHOLE}
    (finding,) = run_check("DISK001", context({"disks": disks}, checkpoints=checkpoints, images=images))
    assert finding.title == "no room for weights and image on /"
    apart = (disks[0], make_disk("/var/lib/docker", 155, "/var"))
    assert run_check("DISK001", context({"disks": apart}, checkpoints=checkpoints, images=images)) == []


def test_an_rpc_worker_needs_no_room_for_weights() -> None:
    """llama.cpp's head alone has the file."""
    full = healthy("spark-2", disks=(make_disk("~/.cache/huggingface/hub", 1),))
    made = context(checkpoints={"spark-1": WHOLE, "spark-2": ABSENT})
    made = replace(made, facts={**made.facts, "spark-2": full})
    rpc = replace(RECIPE, engine=replace(RECIPE.engine, name="llama-cpp"))
    assert [f.subject for f in run_check("DISK001", made)] == ["spark-2"]
    assert run_check("DISK001", replace(made, recipe=rpc)) == []


def test_half_a_checkpoint_needs_only_the_rest() -> None:
    """Guards that a copy that can be resumed is not refused for what is there already."""
    where = {"disks": (make_disk("~/.cache/huggingface/hub", 60),)}
    most = replace(PARTIAL, bytes=100 * GIB)
    assert run_check("DISK001", context(where, checkpoints={"spark-1": most, "spark-2": WHOLE})) == []


def test_pinned_kv_pool_that_is_too_large() -> None:
    """Guards that a pool pinned in bytes, which the engine takes without asking, is compared with what is free."""
    (first, _) = run_check("MEM001", limits(memory_fraction=0.5, kv_cache_bytes=60 * GIB))
    assert first.title == "model does not fit"
    assert first.evidence.endswith("- 60.0 GiB KV pool = -25.9 GiB")
    assert first.remedy.startswith("a smaller serving.kv_cache_bytes; or more nodes than 2")


def test_engine_default_fraction_counts() -> None:
    """Guards that a recipe without a fraction is judged by vLLM's own 0.92."""
    default = replace(RECIPE, serving=Serving())
    (finding,) = run_check("MEM002", context({"memory": memory(20)}, default))
    assert finding.title == "memory fraction 0.92 exceeds free memory"
    assert run_check("MEM002", context({"memory": memory(40)}, ON_CPU)) == []


def test_a_process_to_stop_is_named() -> None:
    """Guards that the biggest holder of GPU memory is the remedy."""
    small = GpuProcess(5, "other", GIB)
    (finding,) = run_check("MEM002", context({"memory": memory(40), "gpu_processes": (small, *HOLDER)}))
    assert finding.remedy == "serving.memory_fraction: 0.67; or stop /usr/bin/ollama (pid 4711, 9.0 GiB)"


def test_nodes_beyond_the_cluster_are_no_trouble() -> None:
    """Guards that facts of a node that the cluster file does not name do not crash a rule."""
    alone = Cluster("desk", (Node("else", "else"),), "else")
    assert isinstance(check_all(context({"docker": ODD}, cluster=alone)), tuple)
    assert healthy("spark-1").node == "spark-1"


def test_without_a_split_that_works_other_node_counts_are_named() -> None:
    """Guards the remedy where nothing can be split over as many nodes."""
    own = Split(Parallelism(3), ("tp 3 does not divide 32 query heads",))
    for counts, remedy in (((2, 4, 8), "one does on 2 or 4"), ((), "no split of this model works here")):
        (finding,) = run_check("PAR001", context(advice=Advice("x", splits=(own,), other_nodes=counts)))
        assert finding.remedy.endswith(remedy)
