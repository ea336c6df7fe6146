"""Plans: what is in them, what makes two of them the same, and what must never be in them."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.app.plan.planning import make_plan, same_ranks, spec_hash
from sparkwright.app.services import ClusterState, api_key
from sparkwright.cli.plan_outlook import Shown
from sparkwright.cli.plan_result import plan_json
from sparkwright.cli.text import plan_text
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.facts import Identity, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.plan import Mount, Plan, stopping
from sparkwright.domain.recipe import Expose, Recipe, RecipeState
from unit.app.scene import HOME, make_scene, recipe, request

IDENTITY = Identity("spark", "0" * 32, "aarch64", "boot", "ai", HOME)
SNAPSHOT = f"{HOME}/hub/models--org--name/snapshots/abc"
HERE = Checkpoint(SNAPSHOT, f"{HOME}/hub/models--org--name", "abc", 10, 3)
NOWHERE = Checkpoint("", f"{HOME}/hub/models--org--name", "", 0, 0)


def state_of_nodes(*names: str, **more: Any) -> ClusterState:
    return ClusterState({name: NodeFacts(name, 1.0, identity=IDENTITY) for name in names}, **more)


def planned(given: Recipe | None = None, cluster_state: ClusterState | None = None, **asked: Any) -> Plan:
    here = make_scene(secrets=asked.pop("secrets", {}))
    return make_plan(
        here.services, request(recipe=given or recipe(), **asked), cluster_state or state_of_nodes("spark-1", "spark-2")
    )


def test_ranks_are_placed_head_first_and_labelled() -> None:
    """The user who finds a rank on a node knows what it belongs to, how to ask it, and whether it is simulated."""
    plan = planned()
    assert plan.placement.nodes == ("spark-1", "spark-2")
    head, worker = (dict(spec.labels) for spec in plan.specs)
    assert {key: head[key] for key in ("deployment", "rank", "world", "recipe", "engine", "port", "bind")} == {
        "deployment": "twin", "rank": "0", "world": "2", "recipe": "twin", "engine": "simulator 0.21.0",
        "port": "8000", "bind": "127.0.0.1",
    }  # fmt: skip
    assert (head["simulated"], head["cluster"], head["served-name"]) == ("true", "lab", "twin-tiny")
    assert (worker["rank"], worker["recipe-hash"]) == ("1", head["recipe-hash"])
    assert head["spec-hash"] != worker["spec-hash"]


def test_the_interpreter_of_this_machine_is_for_this_machine_only() -> None:
    """A path of the laptop in a remote node's command starts nothing there; a local node has exactly that file."""
    here = make_scene()
    first, second = here.services.cluster.nodes
    mixed = replace(here.services, cluster=replace(here.services.cluster, nodes=(first, replace(second, ssh="local"))))
    specs = make_plan(mixed, request(), state_of_nodes("spark-1", "spark-2")).specs
    assert [spec.argv[0] for spec in specs] == ["python3", mixed.python]
    own = replace(recipe(), engine=replace(recipe().engine, venv="~/sparkwright"))
    assert {spec.argv[0] for spec in planned(own).specs} == {f"{HOME}/sparkwright/bin/python"}


def test_what_the_cluster_file_ignores_is_counted() -> None:
    """An ignored finding that is in no line is forgotten; what stops a start is not ignored."""
    here = make_scene()
    documented = replace(recipe(), state=RecipeState.DOCUMENTED)
    for ignore, counted in (((), []), (("REC002",), ["REC002"])):
        there = replace(here.services, cluster=replace(here.services.cluster, ignore=ignore))
        plan = make_plan(there, request(recipe=documented), state_of_nodes("spark-1", "spark-2"))
        assert [one.code for one in plan.ignored] == counted
        assert ("REC002" in [one.code for one in plan.findings]) is not bool(counted)
        said = "; 1 finding ignored by the cluster file: REC002"
        assert (said in plan_text(plan, (), Shown(commands=True))) is bool(counted)


def test_a_node_has_the_last_word_on_its_ranks_environment() -> None:
    """A node's own values (a GPU, an interface) are in the cluster file; a container keeps its own paths."""
    own = (("NCCL_SOCKET_IFNAME", "eth9"), ("CUDA_VISIBLE_DEVICES", "1"), ("PATH", "/node/bin"))
    here = make_scene()
    first, second = here.services.cluster.nodes
    there = replace(here.services, cluster=replace(here.services.cluster, nodes=(first, replace(second, env=own))))
    for profile, path in (("", "/node/bin"), ("docker", None)):
        head, worker = make_plan(
            there, request(recipe=recipe(profile=profile)), state_of_nodes("spark-1", "spark-2")
        ).specs
        assert {name: worker.env.get(name) for name, _ in own} == dict(own) | {"PATH": path}
        assert "CUDA_VISIBLE_DEVICES" not in head.env


def test_the_same_request_gives_the_same_hashes() -> None:
    """`up` twice finds its own ranks again; a later run, another secret value or another survey changes nothing."""
    once = [spec.labels["spec-hash"] for spec in planned().specs]
    assert once == [spec.labels["spec-hash"] for spec in planned().specs]
    assert same_ranks(planned(), once)
    keyed = replace(recipe(), serving=replace(recipe().serving, api_key_env="KEY"))
    hashes = {
        tuple(spec.labels["spec-hash"] for spec in planned(keyed, api_key=Secret(value)).specs) for value in ("a", "b")
    }
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        recipe(port=8001),
        recipe(context=1024),
        replace(recipe(), env={"VLLM_LOGGING_LEVEL": "DEBUG"}),
        replace(recipe(), engine=replace(recipe().engine, venv="/opt/other")),
    ],
    ids=["port", "context", "environment", "program"],
)
def test_what_changes_a_rank_changes_its_hash(changed: Recipe) -> None:
    """Ranks of another request are not taken for ours."""
    assert not same_ranks(planned(), [spec.labels["spec-hash"] for spec in planned(changed).specs])


def test_the_hash_is_short_and_leaves_the_labels_out() -> None:
    """It is in a label itself."""
    spec = planned().specs[0]
    assert spec.labels["spec-hash"] == spec_hash(spec) == spec_hash(replace(spec, labels={}))
    assert len(spec_hash(spec)) == 12


def test_a_key_shows_nowhere() -> None:
    """Not in repr, not in the text, not in the JSON: a mask in its place."""
    plan = planned(recipe(api_key_env="KEY"), api_key=Secret("k-123456"))
    text = plan_text(plan, (), Shown(True, True, True))
    shown = f"{plan!r} {plan} {text} {plan_json(plan, ())}"
    assert "k-123456" not in shown
    assert any(line.strip().endswith("=***") for line in text.splitlines())
    (name,) = plan.specs[0].secrets
    assert plan_json(plan, ())["ranks"][0]["secrets"] == [name]
    assert not plan.specs[1].secrets


def test_a_key_that_is_not_set_is_asked_for() -> None:
    """The key is asked for before anything else, with the command that makes one."""
    services = make_scene(secrets={"KEY": Secret("k")}).services
    assert api_key(services, recipe()) is None
    assert api_key(services, recipe(api_key_env="KEY")) == Secret("k")
    with pytest.raises(UsageError) as caught:
        api_key(services, recipe(api_key_env="OTHER"))
    assert "OTHER" in caught.value.message and "export OTHER=" in caught.value.hint


@pytest.mark.parametrize(
    ("expose", "bind"), [(Expose.LOOPBACK, "127.0.0.1"), (Expose.FABRIC, "192.168.100.10"), (Expose.ALL, "0.0.0.0")]
)
def test_the_endpoint_listens_where_the_recipe_states_and_no_wider(expose: Expose, bind: str) -> None:
    """Private by default: loopback."""
    plan = planned(recipe(expose=expose, api_key_env="KEY" if expose is Expose.ALL else ""))
    assert plan.bind == bind
    assert bind in plan.specs[0].argv
    assert "--host" not in plan.specs[1].argv


def test_under_supervision_only_the_gateway_is_open_to_all() -> None:
    """The engine stays where only the gateway reaches it."""
    plan = planned(recipe(expose=Expose.ALL), supervised=True)
    assert plan.bind == "127.0.0.1"
    assert "0.0.0.0" not in plan.specs[0].argv
    assert planned(recipe(expose=Expose.FABRIC), supervised=True).bind == "192.168.100.10"


def test_without_a_gateway_nobody_listens_for_all_without_a_key() -> None:
    """`up --no-supervise` and emitted files: the engine itself would be open."""
    with pytest.raises(UsageError) as caught:
        planned(recipe(expose=Expose.ALL))
    assert "serving.api_key_env" in caught.value.message


def test_a_cluster_that_is_too_small_is_an_error() -> None:
    """The error names the nodes, and the expected number."""
    with pytest.raises(RecipeError) as caught:
        make_plan(make_scene(1).services, request(), state_of_nodes("spark-1"))
    assert "wants 2 nodes, cluster lab has 1 (spark-1)" in caught.value.message


def test_a_plan_that_does_not_add_up_has_no_commands() -> None:
    """Ranks and nodes that do not match: findings instead of half a plan."""
    plan = planned(replace(recipe(), nodes=1))
    assert plan.specs == ()
    assert plan.placement.nodes == ("spark-1",)


def weights(**model: Any) -> Recipe:
    base = recipe()
    return replace(base, model=replace(base.model, simulated=False, **model))


def test_every_rank_gets_weights_where_they_are_or_will_be() -> None:
    """One node's files are copied to the same place on the others, so all ranks can name it now."""
    given = weights(id="org/name")
    cluster_state = state_of_nodes("spark-1", "spark-2", checkpoints={"spark-1": HERE, "spark-2": NOWHERE})
    for spec in planned(given, cluster_state).specs:
        assert "org/name" in spec.argv or SNAPSHOT in spec.argv
    path = weights(id="", path="qwen3-8b")
    there = Checkpoint(f"{HOME}/models/qwen3-8b", f"{HOME}/models/qwen3-8b", "", 10, 3)
    cluster_state = state_of_nodes("spark-1", "spark-2", checkpoints={"spark-1": there, "spark-2": NOWHERE})
    assert [f"{HOME}/models/qwen3-8b" in spec.argv for spec in planned(path, cluster_state).specs] == [True, True]


def test_a_mount_below_home_gets_the_nodes_home() -> None:
    """`docker run --volume ~/drafts:...` without a shell ends with `invalid characters for a local volume name`."""
    given = replace(recipe(profile="docker"), mounts=("~/drafts:/drafts:ro",))
    for spec in planned(given).specs:
        assert Mount(f"{HOME}/drafts", "/drafts", read_only=True) in spec.mounts


def test_a_venv_below_home_gets_the_nodes_home() -> None:
    """`~/vllm` is where most people have one, and `'~/vllm/bin/python'` is no program."""
    given = replace(recipe(), engine=replace(recipe().engine, venv="~/vllm"))
    assert [spec.argv[0] for spec in planned(given).specs] == [f"{HOME}/vllm/bin/python"] * 2


def test_force_lifts_what_may_be_lifted_and_no_more() -> None:
    """`block` has no way around it."""
    findings = tuple(Finding(f"X{n}", severity, "s", "t") for n, severity in enumerate(Severity))
    plan = replace(planned(), findings=findings)
    assert [f.severity for f in stopping(plan, "")] == [Severity.BLOCK, Severity.OVERRIDE]
    assert [f.severity for f in stopping(plan, "I know")] == [Severity.BLOCK]
