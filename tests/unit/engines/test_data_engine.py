"""An engine that a file or a recipe describes: its commands, its log, and what is refused."""

from importlib.resources import files

import pytest

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Phase
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement
from sparkwright.domain.tuning import TuneGoal
from sparkwright.engines.catalog import (
    ENGINES,
    engine_of,
    figures_of,
    imagined_ranks,
    phases_of,
    rehearse,
    routes_of,
    start_groups,
    traits,
)
from sparkwright.engines.definitions import read_definition, shipped_definitions
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.patterns import safe_pattern
from sparkwright.engines.tables import BUILT_IN
from sparkwright.engines.traits import Claim
from sparkwright.recipes.engine_file import read_engine
from sparkwright.recipes.load import load_recipe
from sparkwright.tune.settings import settings
from unit.for_each import for_each

CUSTOM = """title: t
model: {path: /m/x.gguf, served_name: x}
engine:
  name: custom
  runtime: process
  venv: /v
  command: [serve, "{model}", --host, "{host}", --port, "{port}"]
"""
TENSORFOLD = """title: t
model: {id: org/glm, served_name: glm}
engine: {name: tensorfold, version: 0.6.4, runtime: RUNTIME}
nodes: 2
parallelism: {tp: 2}
serving: {context: 262144, sequences: 4, api_key_env: KEY}
"""
FILE = """name = "mine"
command = ["mine", "--port", "{port}", "--host", "{host}"]
[[log.rule]]
phase = "server"
pattern = 'up at (?P<url>\\S+)'
facts = { url = "url" }
ready = true
"""


def rendered(text, **more):
    recipe = load_recipe(text, "r.yaml")
    nodes = tuple(f"n{rank}" for rank in range(recipe.nodes))
    fabric = {node: FabricChoice(f"192.0.2.{rank + 1}", "eth0", ("mlx5_0",)) for rank, node in enumerate(nodes)}
    home = NodePaths("/models", "/hub", "/cache", "/state")
    context = RenderContext(dict.fromkeys(nodes, home), port=8000, deployment="d", **more)
    return engine_of(recipe).render(recipe, Placement(nodes, fabric), context)


def test_a_custom_command_is_filled_in_and_looked_for_in_the_venv():
    (spec,) = rendered(CUSTOM)
    assert spec.argv == ("/v/bin/serve", "/m/x.gguf", "--host", "127.0.0.1", "--port", "8000")
    assert spec.listens == (("127.0.0.1", 8000),) and not spec.secrets


def test_in_a_container_the_model_is_where_it_is_mounted():
    """The first word becomes the entrypoint, so that an image's own one does not get in the way."""
    docker = CUSTOM.replace("runtime: process\n  venv: /v", "image: x@sha256:" + "0" * 64)
    (spec,) = rendered(docker, models={"n0": "/m/x.gguf"})
    assert (spec.entrypoint, spec.argv[0], spec.mounts[0].host) == (("serve",), "/models/x.gguf", "/m/x.gguf")


def test_tensorfold_starts_a_rank_a_node_with_its_key_in_a_file():
    """The commands are those of its page for GLM-5.3-Flash: both ranks take rank 0's address on the link."""
    hub = "/hub/models--org--glm/snapshots/1"
    head, worker = rendered(
        TENSORFOLD.replace("RUNTIME", "process"),
        models=dict.fromkeys(("n0", "n1"), hub),
        from_hub=True,
        api_key=Secret("k"),
        bind="192.0.2.1",
    )
    several = "--tp 2 --rank {} --master 192.0.2.1 --master-port 25000 --context 262144 --parallel 4"
    start = f"tensorfold serve {hub} --host {{}} --port 8000 --name glm "
    key = " --api-key-file /state/deployments/d/rank0/files/api-key"
    assert " ".join(head.argv) == start.format("192.0.2.1") + several.format(0) + key
    assert " ".join(worker.argv) == start.format("127.0.0.1") + several.format(1)
    assert [file.name for file in head.files] == ["api-key"] and "k" not in " ".join(head.argv).split()
    assert head.env["NCCL_SOCKET_IFNAME"] == "eth0" and head.env["HF_HUB_OFFLINE"] == "1" and not worker.files


@for_each(
    "line, phase, facts",
    [
        (
            "[tensorfold] CUDA rank 0 startup estimate 89.06 GiB within 94.00 GiB; native 262144, allocated"
            " prompt/reply window 262144, cache slots 262151",
            Phase.LOAD,
            {"whole_gib": "89.06", "context": "262144"},
        ),
        (
            "[tensorfold] serving GLM-5.3-Flash-EXL3 at http://127.0.0.1:8000/v1 on CUDA, rank 0 of 2",
            Phase.SERVER,
            {"url": "http://127.0.0.1:8000/v1"},
        ),
    ],
)
def test_tensorfold_s_log_is_read(line, phase, facts):
    """Lines as owners of Sparks quote them."""
    recipe = load_recipe(TENSORFOLD.replace("RUNTIME", "process"), "r.yaml")
    event = engine_of(recipe).read(line)
    assert (event.phase, dict(event.facts)) == (phase, facts)


def test_tensorfold_s_refusal_before_loading_is_an_error():
    recipe = load_recipe(TENSORFOLD.replace("RUNTIME", "process"), "r.yaml")
    event = engine_of(recipe).read("ValueError: estimated largest fitting prompt-plus-reply window: 246909 tokens")
    assert event.error and "246909" in event.text
    done = engine_of(recipe).read("[tensorfold] done req-1 prompt=640 cached=0 thinking=True tokens=5 sha=x")
    assert done.alive and not done.ready


@for_each(
    "order, groups",
    [
    ("", [[1, 2], [0]]), ("workers-first", [[1, 2], [0]]), ("head-first", [[0], [1, 2]]),
    ("last-to-first", [[2], [1], [0]]),
    ],
)  # fmt: skip
def test_ranks_start_in_the_order_of_their_engine(order, groups):
    """Guards an engine that wants its head, or each rank, to be there first; without a word the workers are."""
    said = f"  definition: {{start_order: {order}}}\n" if order else ""
    text = CUSTOM.replace("engine:", "nodes: 3\nparallelism: {tp: 3}\nengine:").replace(
        '"{port}"', '"{port}", "{rank}"'
    )
    recipe = load_recipe(text + said, "r.yaml")
    found = start_groups(recipe, imagined_ranks(recipe))
    assert [[spec.rank for spec in group] for group in found] == groups
    plain = load_recipe(text, "r.yaml").hash
    assert (recipe.hash == plain) is (order in ("", "workers-first"))
    one = load_recipe(CUSTOM + said, "r.yaml")
    assert [[spec.rank for spec in group] for group in start_groups(one, imagined_ranks(one))] == [[0]]


def test_what_is_not_known_of_a_custom_engine_stays_so():
    recipe = load_recipe(CUSTOM, "r.yaml")
    assert traits(recipe).opaque and figures_of(recipe) == {} and phases_of(recipe)[Phase.LOAD].stuck_after == 1800
    assert "POST /v1/embeddings" in routes_of(recipe).calls and engine_of(recipe).read("INFO: up") is None


@for_each(
    "old, new, codes",
    [
    ("", "", set()),
    ("--host, \"{host}\", ", "", {"ENG036"}),
    ("engine:", "serving: {api_key_env: KEY}\nengine:", {"ENG037"}),
    ("engine:", "nodes: 2\nparallelism: {tp: 2}\nengine:", {"ENG014"}),
    ],
)  # fmt: skip
def test_what_a_custom_engine_cannot_do_is_found(old, new, codes):
    assert {one.code for one in rehearse(load_recipe(CUSTOM.replace(old, new, 1), "r.yaml"))} == codes


@for_each(
    "old, new, message",
    [
    ('"{port}"', '"80"', "m.toml:2: `command` has no {port}: sparkwright could not tell the server where to listen"),
    ("name =", 'titel = "x"\nname =', "m.toml:1: unknown key `titel`; did you mean `title`?"),
    ("{host}", "{hots}", "m.toml:2: `command`: no placeholder {hots}; did you mean {host}? (a brace itself is `{{`)"),
    ("\\S+)", "\\S+)+x", "m.toml:5: `log.rule.pattern`: 'up at (?P<url>\\\\S+)+x': it backtracks: a repeat"),
    ("(?P<url>\\S+)", "(?P<url>", "m.toml:5: `log.rule.pattern`: 'up at (?P<url>': no pattern: missing )"),
    ('{ url = "url" }', '{ url = "u" }', "m.toml:3: `log.rule`: no group 'u' in "),
    ("name =", 'start_order = "first"\nname =', "m.toml:1: `start_order`: found 'first'"),
    ("name =", "serial = {'a b' = 1}\nname =", "m.toml:1: `serial.a b`: found 'a b'"),
    ("[[log", "[metrics]\nrequests_running = 'a{b}'\n[[log", "m.toml:4: `metrics.requests_running`: found 'a{b}'"),
    ("name =", "websockets = ['x']\nname =", "m.toml:1: `websockets"),
    ('phase = "server"', 'phase = "serve"', "m.toml:4: `log.rule.phase`: found 'serve'; allowed: start,"),
    ('"mine"\n', '"vllm"\n', "m.toml:1: `name`: 'vllm' is an engine of sparkwright's own: take another"),
    ("name =", "name = [\nname =", "m.toml:2: this is not TOML: "),
    ("[[log", "[options]\ncontxt = ['x']\n[[log", "m.toml:4: `options`: unknown key 'contxt'; did you mean context?"),
    ("[[log", "[env]\nA = 'hf_abcdefghijkl'\n[[log", "m.toml:4: `env.A`: a key must not be in a file"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_engine_file_is_named_with_its_line(old, new, message):
    with pytest.raises(RecipeError) as caught:
        read_engine(FILE.replace(old, new, 1), "m.toml")
    assert caught.value.message.startswith(message)


def test_a_recipe_finds_the_user_s_engine_file():
    text = "title: t\nmodel: {id: a/b}\nengine: {name: mine, runtime: process}\n"
    recipe = load_recipe(text, "r.yaml", engines=(("mine.toml", FILE),))
    assert engine_of(recipe).read("up at http://x").ready and recipe.engine.definition.source == "mine.toml"
    with pytest.raises(RecipeError, match=r"mine\.toml:2: `command` has no"):
        load_recipe(text, "r.yaml", engines=(("mine.toml", FILE.replace("{port}", "1")),))
    with pytest.raises(RecipeError, match=r"r\.yaml:3: `engine.name`: found 'mine'; known: vllm,"):
        load_recipe(text, "r.yaml")


def test_the_user_s_own_file_takes_the_place_of_one_that_ships():
    """An owner whose TensorFold has another option need not wait for a release of ours; modules stay ours."""
    text = "title: t\nmodel: {id: a/b}\nengine: {name: NAME, runtime: process}\n"
    own = (("tensorfold.toml", FILE.replace('"mine"', '"tensorfold"', 1)),)
    recipe = load_recipe(text.replace("NAME", "tensorfold"), "r.yaml", engines=own)
    assert recipe.engine.definition.command[0] == "mine"
    assert load_recipe(text.replace("NAME", "tensorfold"), "r.yaml").engine.definition is None
    assert load_recipe(text.replace("NAME", "vllm"), "r.yaml", engines=(("vllm.toml", FILE),)).engine.definition is None


def test_a_custom_command_without_a_port_is_refused_at_its_line():
    with pytest.raises(RecipeError, match=r"r.yaml:7: `engine.command` has no \{port\}"):
        load_recipe(CUSTOM.replace("{port}", "80"), "r.yaml")
    with pytest.raises(RecipeError, match=r"r\.yaml:3: `engine.command` is empty"):
        load_recipe("title: t\nmodel: {id: a/b}\nengine: {name: custom, runtime: process}\n", "r.yaml")
    with pytest.raises(RecipeError, match="belongs to `name: custom`; found 'vllm'"):
        load_recipe(CUSTOM.replace("name: custom", "name: vllm"), "r.yaml")


def test_prose_of_a_definition_does_not_change_what_is_served():
    """The hash is of what runs: a title is not, a command is."""
    base = load_recipe(CUSTOM, "r.yaml").hash
    assert load_recipe(CUSTOM + "  memory: 4g\n  definition: {title: Mine, tried: here}\n", "r.yaml").hash == base
    assert load_recipe(CUSTOM.replace("--host", "--address"), "r.yaml").hash != base


@for_each(
    "pattern",
    [
    "(a+)+b", "(?:\\w+ ?){2,30}x", ".*a.*b.*c", "(a)\\1", "(x{1,60}){2,60}", "(", "a" * 1001,
    ],
)  # fmt: skip
def test_a_pattern_that_can_explode_is_refused(pattern):
    with pytest.raises(ValueError, match=r".+"):
        safe_pattern(pattern)


def test_every_shipped_file_keeps_the_schema():
    folder = files("sparkwright.engines") / "data" / "engines"
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    made = {
        (one := read_engine(text, f"engines/{name}", name.removesuffix(".toml") in BUILT_IN)).name: one
        for name, text in texts.items()
    }
    assert {name: one for name, one in made.items() if name not in BUILT_IN} == shipped_definitions()
    assert {name: made[name] for name in BUILT_IN} == {name: read_definition(name) for name in BUILT_IN}
    assert set(BUILT_IN) == set(ENGINES) and "tensorfold" in made


def test_what_a_file_says_of_memory_is_planned_with():
    """Guards claim, overhead and checks as data: an engine that takes a share of the pool, and its known fault."""
    said = """  definition:
    traits:
      claim: pool
      fraction: 0.9
      overhead: {gib: 2.0, low: 1.0, high: 3.0, why: two starts}
      faults: [RCP025]
      timeout: [wait, 900]
      limits: [4096, 8]
      outside: [engine's processes]
    caches: {TRITON_CACHE_DIR: triton}
    per_rank: [rank]
"""
    recipe = load_recipe(CUSTOM + said, "r.yaml")
    found = traits(recipe)
    assert not found.opaque and (found.claim, found.fraction, found.whole.gib) == (Claim.POOL, 0.9, 2.0)
    assert (found.faults, found.timeout, found.limits(recipe, True)) == ({"RCP025"}, ("wait", 900), (4096, 8))
    (spec,) = rendered(CUSTOM + said)
    assert spec.env["TRITON_CACHE_DIR"].endswith("/triton")
    doubled = load_recipe(CUSTOM + said + "flags: {rank: 1}\n", "r.yaml")
    assert "ENG013" in {one.code for one in rehearse(doubled)}
    assert load_recipe(CUSTOM + said, "r.yaml").hash != load_recipe(CUSTOM, "r.yaml").hash


@for_each(
    "line, why",
    [
    ("clam = 'pool'", "unknown key 'clam'; did you mean claim?"),
    ("claim = 'half'", "claim: 'half' does not fit"),
    ("fraction = 'x'", "fraction: 'x' does not fit: expected a number"),
    ("queue = 1", "queue: 1 does not fit: expected bool"),
    ("hop = [1]", "hop: [1] does not fit: expected 3 numbers"),
    ("overhead = {gib = 1}", "overhead: {'gib': 1} does not fit: expected gib, low, high and why"),
    ("outside = ['x']", "outside: ['x'] does not fit: no lines of the ledger: x"),
    ("faults = 'x'", "faults: 'x' does not fit: expected a list"),
    ("limits = [1]", "limits: [1] does not fit"),
    ],
)  # fmt: skip
def test_a_mistake_in_traits_is_named_with_its_line(line, why):
    with pytest.raises(RecipeError) as caught:
        read_engine(FILE.replace("[[log", f"[traits]\n{line}\n[[log", 1), "m.toml")
    assert caught.value.message.startswith(f"m.toml:4: `traits`: {why}"), caught.value.message


@for_each("name", [*ENGINES, *shipped_definitions()])
def test_a_version_that_does_not_exist_yet_blocks_nothing(name):
    """Guards upgrades: the newest data are used, and what is not known is said once, as no more than a warning."""
    if name == "simulator":
        return
    extra = "flags: {new-flag-of-tomorrow: true}\nenv: {VLLM_OF_TOMORROW: 1}\n"
    path = "path: /m/x.gguf" if name == "llama-cpp" else "id: a/b"
    nodes = "nodes: 2\nparallelism: {tp: 2}\n" if name in ("vllm-ray", "trtllm") else ""
    for version in ("version: 99.1.0,", "version: nightly,", ""):
        text = f"title: t\nmodel: {{{path}}}\nengine: {{name: {name}, {version} runtime: process}}\n{nodes}{extra}"
        found = rehearse(load_recipe(text, "r.yaml"))
        stops = [one for one in found if one.severity.stops]
        assert not stops, stops
        assert len([one for one in found if one.code == "ENG005"]) <= 1


COMPLETE = FILE.replace(
    "[[log.rule]]",
    """versions = ["1.2.0"]
prefixes = ["MINE_"]
[options]
context = ["--window", "{context}"]
kv_dtype = ["--cache", "{kv_dtype}"]
[flags]
window = []
fast-path = ["1.4.0"]
[variables]
MINE_POOL_GIB = []
MINE_OLD = ["1.0.0", "1.1.0"]
[words]
sequences = ["--slots"]
[renamed]
ctx = "--window"
[values.kv_dtype]
fp8 = "e4m3"
[tune.slots]
key = "flags.slots"
values = [1, 8]
goals = ["throughput"]
what = "requests at once"
[[log.rule]]""",
    1,
)
OWN = """title: t
model: {id: a/b}
engine: {name: mine, version: 1.2.0, runtime: process}
serving: {context: 4096, kv_dtype: fp8}
"""


def test_an_owners_file_says_what_the_shipped_ones_say():
    """Words of other engines, old names, values, variables and what `tune` tries are keys of every file."""
    more = """flags: {max-model-len: 1, max-num-seqs: 2, ctx: 3, windw: 4, fast-path: true}
env: {MINE_POOL_GB: 1, MINE_OLD: 1, MINE_POOL_GIB: 8, OTHER: x}
"""
    recipe = load_recipe(OWN + more, "r.yaml", engines=(("mine.toml", COMPLETE),))
    found = {finding.subject: (finding.title, finding.remedy) for finding in rehearse(recipe)}
    assert found["flags.max-model-len"][1] == "write --window: --max-model-len is vllm's word"
    assert found["flags.max-num-seqs"][1] == "write --slots: --max-num-seqs is vllm's word"
    assert found["flags.ctx"][1] == "write --window: renamed"
    assert found["flags.windw"][1] == "did you mean window?"
    assert found["flags.fast-path"][0] == "mine 1.2.0 may not have --fast-path"
    assert found["env.MINE_POOL_GB"][1] == "did you mean MINE_POOL_GIB?"
    assert found["env.MINE_OLD"][0] == "mine 1.2.0 may not read MINE_OLD"
    assert "env.OTHER" not in found and "env.MINE_POOL_GIB" not in found
    (spec,) = imagined_ranks(recipe)
    assert spec.argv[5:9] == ("--window", "4096", "--cache", "e4m3")
    assert [one.values for one in settings(recipe, TuneGoal.THROUGHPUT, 8)] == [(None, 1, 8)]
    assert settings(recipe, TuneGoal.LATENCY, 8) == ()


@for_each(
    "wrong, said",
    [
    ('[words]\ncontxt = ["--window"]', r"mine\.toml:4: `words`: unknown key 'contxt'; did you mean context\?"),
    ('[values.kv_type]\nfp8 = "e4m3"', r"mine\.toml:3: `values`: unknown key 'kv_type'; did you mean kv_dtype\?"),
    ("[variables]\nMINE_A = []", r"mine\.toml:3: `variables` needs `prefixes`"),
    ("[tune.a]\nvalues = [1]", r"mine\.toml:3: `tune.a.key`"),
    ('[tune.a]\nkey = "slots"\nvalues = [1]', r"mine\.toml:4: `tune.a.key`"),
    ('[tune.a]\nkey = "serving.sequence"\nvalues = [1]', r"mine\.toml:4: `tune.a.key`: .* mean serving.sequences\?"),
    ("log = { bars = 3 }", r"`log.bars`: found 3; expected a pattern in quotes"),
    ("closed = []", r"mine\.toml:3: unknown key `closed`"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_those_keys_is_named_with_its_line(wrong, said):
    text = "\n".join((*FILE.splitlines()[:2], wrong, *(FILE.splitlines()[2:] if "log" not in wrong else ())))
    with pytest.raises(RecipeError, match=said):
        read_engine(text, "mine.toml")


def test_a_recipe_of_a_custom_engine_keeps_its_hash():
    """Advice changes nothing that is served; a value that is written differently does."""
    base = load_recipe(CUSTOM, "r.yaml").hash
    said = "  definition: {prefixes: [MINE_], variables: {MINE_A: []}, words: {context: [--n]}, renamed: {ctx: --n}}\n"
    assert load_recipe(CUSTOM + said, "r.yaml").hash == base
    assert load_recipe(CUSTOM + "  definition: {values: {kv_dtype: {fp8: e4m3}}}\n", "r.yaml").hash != base


def test_every_mistake_in_a_log_has_its_own_line():
    """One odd rule hides no other, and a text that could not be filled in is refused before a line is read."""
    text = """name = "m"
command = ["m", "{port}"]
[log]
prefx = "a"
failures = ["^(a+)+$", 3]
[[log.rule]]
phase = "lod"
pattern = "(a+)+"
[[log.rule]]
phase = "load"
patern = "x"
text = "{n.x}"
"""
    with pytest.raises(RecipeError) as caught:
        read_engine(text, "m.toml")
    found = [line.split(": ", 3)[:2] for line in caught.value.message.splitlines()]
    assert found == [
        ["m.toml:4", "`log`"],
        ["m.toml:5", "`log.failures`"],
        ["m.toml:5", "`log.failures`"],
        ["m.toml:7", "`log.rule.phase`"],
        ["m.toml:8", "`log.rule.pattern`"],
        ["m.toml:9", "`log.rule.pattern`"],
        ["m.toml:11", "`log.rule`"],
        ["m.toml:12", "`log.rule.text`"],
    ]
    with pytest.raises(RecipeError, match=r'm.toml:2: `command`: found .*; expected a list, as in \["one", "two"\]'):
        read_engine('name = "m"\ncommand = "m {port}"\n', "m.toml")
