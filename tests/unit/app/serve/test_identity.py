"""The look into the image: on all nodes at once, once, and before anything is started."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkwright.app.cluster_state import digest_of, engines, image_of, looked_at
from sparkwright.app.serve.changed import served
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import prepare
from sparkwright.app.services import ClusterState, LaunchRequest
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Refused, Unreachable
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime
from sparkwright.remote import staging
from unit.app.scene import PATHS, ClusterScene, make_scene

NODES = ("spark-1", "spark-2")
VLLM = EngineChoice("vllm", "0.21.1", image="acme/vllm:1")
RECIPE = Recipe("r", "R", Model("org/name"), VLLM, nodes=2)
LISTED = "path\t/hub/m/snapshots/1\nroot\t/hub/m\nrevision\t1\nfile\t10\ta.safetensors\nfile\t2\tconfig.json\n"
FOUND = "@@ arch\narm64\n@@ found\nvllm 0.21.1\n@@ end\n"


def running(command: Command) -> bool:
    """The question that starts a container when nothing is known yet."""
    return "run" in command.argv[5:]


def asking(image: str) -> Callable[[Command], bool]:
    return lambda command: image in command.argv and any("@@ found" in word for word in command.argv)


async def test_all_nodes_are_asked_and_what_they_report_is_kept() -> None:
    """Two nodes may hold two images under one tag."""
    here = make_scene()
    here.nodes[0].on(running, FOUND)
    here.nodes[1].on(running, FOUND.replace("0.21.1", "0.22.0"))
    found = await looked_at(here.services, RECIPE, NODES, ClusterState({}))
    assert found.engines == {
        "spark-1": EngineFound("arm64", {"vllm": "0.21.1"}),
        "spark-2": EngineFound("arm64", {"vllm": "0.22.0"}),
    }


async def test_what_is_known_is_not_asked_again() -> None:
    """A second `up` costs nothing: the survey has read what the first one kept."""
    here, known = make_scene(), ClusterState({}, engines=dict.fromkeys(NODES, EngineFound("arm64")))
    assert await looked_at(here.services, RECIPE, NODES, known) is known
    assert not [command for node in here.nodes for command in node.commands]


async def test_a_plan_starts_no_container() -> None:
    """`plan` and `up --dry-run` change nothing and are quick: they read what is known."""
    here = make_scene()
    for node in here.nodes:
        node.on(asking("acme/vllm:1"), Completed(0, ""))
    assert await engines(here.services, here.services.cluster.nodes, RECIPE) == {}
    asked = [command for node in here.nodes for command in node.commands]
    assert len(asked) == 2 and not any(running(command) for command in asked)


@pytest.mark.parametrize("engine", [{"name": "simulator"}, {"image": ""}])
async def test_nothing_to_ask(engine: dict[str, str]) -> None:
    """The simulator's image is made on the spot, and without an image there is nothing to look into."""
    here, recipe = make_scene(), replace(RECIPE, engine=replace(VLLM, **engine))
    assert await engines(here.services, here.services.cluster.nodes, recipe) == {}
    assert not [command for node in here.nodes for command in node.commands]


async def test_whatever_runs_on_a_simulated_cluster_is_the_simulator() -> None:
    """Its version would be sparkwright's, under another engine's name."""
    here = make_scene()
    services = replace(here.services, cluster=replace(here.services.cluster, simulated=True))
    assert await engines(services, services.cluster.nodes, RECIPE, look=True) == {}


async def test_a_process_is_asked_with_its_own_python() -> None:
    """The venv that the rank will run in, not the node's first Python."""
    here, recipe = make_scene(), replace(RECIPE, engine=replace(VLLM, runtime=Runtime.PROCESS, image="", venv="/opt/v"))
    await engines(here.services, here.services.cluster.nodes, recipe)
    assert all("/opt/v/bin/python" in node.commands[0].argv for node in here.nodes)


async def test_a_worker_of_llama_cpp_needs_no_server() -> None:
    """It runs rpc-server: asking it for llama-server would refuse a pair that works."""
    here = make_scene()
    recipe = replace(RECIPE, engine=EngineChoice("llama-cpp", "2026.10.11549", Runtime.PROCESS))
    here.nodes[0].on(lambda command: "llama-server" in command.argv, "@@ found\n@@ end\n")
    assert await engines(here.services, here.services.cluster.nodes, recipe) == {"spark-1": EngineFound("")}
    assert here.nodes[1].commands == []


async def test_a_node_that_is_lost_meanwhile_is_unknown() -> None:
    """A question that fails forbids nothing automatically: the start will report that the node is gone."""
    here = make_scene()
    for node in here.nodes:
        node.on(running, Unreachable(node.name, "gone"))
    found = await looked_at(here.services, RECIPE, NODES, ClusterState({}))
    assert all(isinstance(seen, Unknown) for seen in found.engines.values())


async def test_up_refuses_before_the_start() -> None:
    """An environment without the engine is named while nothing runs, and every lease is given back."""
    here: ClusterScene = make_scene(1)
    here.nodes[0].on(asking("/opt/v/bin/python"), "@@ found\n@@ end\n")
    engine = EngineChoice("llama-cpp", "2026.10.11549", Runtime.PROCESS, venv="/opt/v")
    recipe = Recipe("r", "R", Model(path="/m/tiny.gguf"), engine)
    with pytest.raises(Refused) as caught:
        await up(here.services, LaunchRequest(recipe, "r", "a test"), Options())
    assert "ENG018" in [finding.code for finding in caught.value.findings]
    assert here.did("start") == [] and here.clean


async def test_a_wrong_image_is_named_before_weights_are_copied() -> None:
    """Hours of copying for an image that cannot serve them: it is looked into first."""
    here, split = make_scene(), replace(RECIPE, parallelism=Parallelism(tp=2))
    for node in here.nodes:
        node.on(lambda command: command == staging.inspect_image("acme/vllm:1"), "sha256:a 9\n")
        node.on(asking("acme/vllm:1"), Completed(0, ""))
        node.on(running, FOUND.replace("vllm", "sglang"))
    here.nodes[0].on(lambda command: command == staging.list_hub(PATHS.hub, "org/name", ""), LISTED)
    with pytest.raises(Refused) as caught:
        await up(here.services, LaunchRequest(split, "r", "a test"), Options())
    assert "ENG018" in [finding.code for finding in caught.value.findings]
    assert not any("copy" in command.changes for node in here.nodes for command in node.commands)
    assert here.did("start") == [] and here.clean


@pytest.mark.parametrize(
    ("reference", "printed", "digest"),
    [
        ("vllm/vllm-openai:latest", "sha256:a 9 vllm/vllm-openai@sha256:1f", "vllm/vllm-openai@sha256:1f"),
        ("vllm:nightly", "sha256:a 9 lan:5000/vllm@sha256:2f docker.io/acme/vllm@sha256:3f", "lan:5000/vllm@sha256:2f"),
        ("lan:5000/vllm:main", "sha256:a 9 acme/vllm@sha256:3f lan:5000/vllm@sha256:2f", "lan:5000/vllm@sha256:2f"),
        ("mine:1", "sha256:a 9", ""),
        ("mine:1", "sha256:a 9 $(x)@sha256:1f", ""),
    ],
)
def test_a_tag_is_recorded_by_its_digest(reference: str, printed: str, digest: str) -> None:
    """It is the name under which the same image can be pulled again; an image that was built here has none."""
    assert digest_of(Completed(0, f"{printed}\n"), reference) == digest
    assert image_of(Completed(0, f"{printed}\n")) == ("sha256:a", 9)
    state = ClusterState({}, images={"spark-1": ("sha256:a", 9)}, digests={"spark-1": digest} if digest else {})
    assert served(RECIPE, ["spark-1"], state).get("spark-1 image digest", "") == digest


@pytest.mark.parametrize("everywhere", [True, False])
async def test_a_relaunch_keeps_the_image_that_served(everywhere: bool) -> None:
    """Somebody pulled a newer `latest`. Where a node has the one that served no more, all take the tag's."""
    here, split = make_scene(), replace(RECIPE, parallelism=Parallelism(tp=2))
    for number, node in enumerate(here.nodes):
        node.on(lambda command: command == staging.inspect_image("acme/vllm:1"), "sha256:b 9\n")
        there = everywhere or number == 0
        node.on(lambda c: c == staging.inspect_image("sha256:a"), "sha256:a 9\n" if there else Completed(1, ""))
        node.on(lambda command: command == staging.list_hub(PATHS.hub, "org/name", ""), LISTED)
        node.on(asking("acme/vllm:1"), FOUND)
        node.on(asking("sha256:a"), FOUND.replace("0.21.1", "0.21.0"))
    outcome = await prepare(here.services, LaunchRequest(split, "r", image="sha256:a"))
    wanted = "sha256:a" if everywhere else "sha256:b"
    assert [outcome.cluster_state.images[node] for node in NODES] == [(wanted, 9)] * 2
    assert outcome.plan.recipe.engine.version == ("0.21.0" if everywhere else "0.21.1")
    assert {spec.image for spec in outcome.plan.specs} == {"acme/vllm:1"}  # the same ranks to a later `up`
