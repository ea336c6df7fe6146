"""The copies needed on each node, and the reports when they fail."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.rank_node import HOME, Rank
from sparkwright.app.cluster_state import gather_stock
from sparkwright.app.copy.stage import CopyNeeds, image_needs, model_needs, stage_image, stage_model, staging_text
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.services import ClusterState
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Transfer
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.facts import Identity, NodeFacts, Unknown
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Notice, Progress
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.remote import staging
from unit.app.scene import ClusterScene, make_scene, recipe, request
from unit.for_each import for_each

IDENTITY = Identity("spark", "0" * 32, "aarch64", "boot", "ai", HOME)
ROOT = f"{HOME}/hub/models--org--name"
WHOLE = Checkpoint(f"{ROOT}/snapshots/abc", ROOT, "abc", 4 * 1024**3, 3)
HALF = replace(WHOLE, missing=("model-00002-of-00002.safetensors (absent)",))
OTHER = replace(WHOLE, revision="def")
NONE = Checkpoint("", ROOT, "", 0, 0)
NODES = ("spark-1", "spark-2")


def real_recipe(name: str = "twin", profile: str = "") -> Recipe:
    """A recipe with weights, which need not be what they are called."""
    found = recipe(name, profile)
    return replace(found, model=replace(found.model, simulated=False, id="org/name", size=4 * 1024**3))


def state_with_checkpoints(*checkpoints: Checkpoint | Unknown, images: Any = None) -> ClusterState:
    facts = {name: NodeFacts(name, 1.0, identity=IDENTITY) for name in NODES}
    return ClusterState(facts, dict(zip(NODES, checkpoints, strict=False)), images or {})


def plan(given: Recipe, cluster_state: ClusterState) -> Plan:
    return make_plan(make_scene().services, request(recipe=given), cluster_state)


@for_each(
    "checkpoints, needs",
    [
        ((WHOLE, WHOLE), CopyNeeds((), "spark-1")),
        ((WHOLE, NONE), CopyNeeds(("spark-2",), "spark-1")),
        ((NONE, WHOLE), CopyNeeds(("spark-1",), "spark-2")),
        ((HALF, WHOLE), CopyNeeds(("spark-1",), "spark-2")),
        ((NONE, NONE), CopyNeeds(NODES)),
        ((HALF, HALF), CopyNeeds(NODES)),
        ((WHOLE, OTHER), CopyNeeds(("spark-2",), "spark-1")),
        ((Unknown("", "exit 1"), WHOLE), CopyNeeds(("spark-1",), "spark-2")),
    ],
    ids=["both", "worker", "head", "half", "none", "halves", "revisions", "unreadable"],
)
def test_which_nodes_lack_the_weights(checkpoints: tuple[Checkpoint, ...], needs: CopyNeeds) -> None:
    """Half a model counts as none, and two revisions of one model are two models."""
    cluster_state = state_with_checkpoints(*checkpoints)
    assert model_needs(plan(real_recipe(), cluster_state), cluster_state) == needs


@pytest.mark.parametrize(
    ("checkpoints", "needs"),
    [((WHOLE, NONE), CopyNeeds((), "spark-1")), ((NONE, WHOLE), CopyNeeds(("spark-1",), "spark-2"))],
)
def test_rpc_workers_need_no_weights(checkpoints: tuple[Checkpoint, ...], needs: CopyNeeds) -> None:
    """llama.cpp's head sends each worker its layers: a file of 128 GB on the worker would only fill its disk."""
    cluster_state = state_with_checkpoints(*checkpoints)
    rpc = replace(real_recipe().engine, name="llama-cpp")
    assert (
        model_needs(
            replace(plan(real_recipe(), cluster_state), recipe=replace(real_recipe(), engine=rpc)), cluster_state
        )
        == needs
    )


def test_a_simulated_model_needs_no_weights() -> None:
    """No weights are needed unless a node has files of it: then all need them."""
    assert model_needs(
        plan(recipe(), state_with_checkpoints(NONE, NONE)), state_with_checkpoints(NONE, NONE)
    ) == CopyNeeds(())
    assert model_needs(
        plan(recipe(), state_with_checkpoints(WHOLE, NONE)), state_with_checkpoints(WHOLE, NONE)
    ) == CopyNeeds(("spark-2",), "spark-1")


@pytest.mark.parametrize(
    ("images", "needs"),
    [
        ({"spark-1": ("sha256:a", 9), "spark-2": ("sha256:a", 9)}, CopyNeeds((), "spark-1")),
        ({"spark-1": ("sha256:a", 9)}, CopyNeeds(("spark-2",), "spark-1")),
        ({"spark-2": ("sha256:a", 9)}, CopyNeeds(("spark-1",), "spark-2")),
        ({"spark-1": ("sha256:a", 9), "spark-2": ("sha256:b", 9)}, CopyNeeds(("spark-2",), "spark-1")),
        ({}, CopyNeeds(NODES)),
    ],
    ids=["both", "worker", "head", "another", "none"],
)
def test_which_nodes_lack_the_image(images: dict[str, tuple[str, int]], needs: CopyNeeds) -> None:
    """The same name is not the same image: the head's is what all get."""
    cluster_state = state_with_checkpoints(images=images)
    assert image_needs(plan(recipe(profile="docker"), cluster_state), cluster_state) == needs


def test_a_process_needs_no_image() -> None:
    """The runtime decides."""
    assert image_needs(plan(recipe(), state_with_checkpoints()), state_with_checkpoints()) == CopyNeeds(())


def test_what_would_be_copied_is_reported_before() -> None:
    """`plan` reports what `up` would copy or fetch, with the size where it is known."""
    cluster_state = state_with_checkpoints(WHOLE, NONE)
    assert staging_text(plan(real_recipe(), cluster_state), cluster_state) == (
        "weights: copied from spark-1 to spark-2 over the fabric",
    )
    cluster_state = state_with_checkpoints(NONE, NONE)
    assert staging_text(plan(real_recipe(), cluster_state), cluster_state) == (
        "weights (4.0 GiB): on no node; fetched once on spark-1, then copied",
    )
    cluster_state = state_with_checkpoints(WHOLE, WHOLE)
    assert staging_text(plan(real_recipe(), cluster_state), cluster_state) == ()


# Doing it


def is_listing(command: Command) -> bool:
    """The listing of a model, asked again after staging."""
    return not command.changes and "snapshots" in command.argv[2] and command.argv[0] == "sh"


LISTED = f"path\t{ROOT}/snapshots/abc\nroot\t{ROOT}\nrevision\tabc\nfile\t10\ta.safetensors\nfile\t2\tconfig.json\n"


def wrapped(word: str) -> Any:
    """A long command, which runs inside a script that reports its exit code."""
    return lambda command: word in command.changes


def staged(here: ClusterScene, *lines: str, code: int = 0) -> ClusterScene:
    here.nodes[0].on(wrapped("copy"), [*lines, f"\x1eend {code}"])
    for node in here.nodes:
        node.on(lambda c: "SSH_CONNECTION" in c.argv[2], "ai 22 /home/ai\nssh-ed25519 AAAA root@x\n")
        node.on(lambda c: "is complete" in c.changes or "nocache" in " ".join(c.argv), Completed(0, ""))
        node.on(is_listing, LISTED)
    return here


async def test_weights_go_from_who_has_them_to_who_has_not() -> None:
    """Weights go over the fabric address, with that node's own host keys; progress is in GiB; then the target is
    inspected again."""
    here = staged(make_scene(), "  1,073,741,824  25%  100.0MB/s    0:00:30", "2147483648 bytes")
    cluster_state = state_with_checkpoints(WHOLE, NONE)
    assert await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    (copy,) = [command for command in here.nodes[0].commands if command.changes.startswith("copy")]
    text = " ".join(copy.argv)
    assert "192.168.100.11 ssh-ed25519 AAAA" in text
    assert "ai@192.168.100.11" in text
    assert copy.forward_agent
    told = here.sink.of(Progress)
    assert [(one.done, one.total) for one in told] == [(1.0, 4.0), (2.0, 4.0)]
    assert "spark-2" in told[0].text


@pytest.mark.parametrize(
    ("code", "hint"), [(255, "ssh-add"), (127, "rsync"), (11, "make room on spark-2"), (12, "`up` again")]
)
async def test_a_copy_that_fails_reports_how_to_go_on(code: int, hint: str) -> None:
    """The failure is judged by its exit code, never by its wording; the last lines of the program are shown."""
    here = staged(make_scene(), "rsync: something odd", code=code)
    cluster_state = state_with_checkpoints(WHOLE, NONE)
    with pytest.raises(CommandFailed) as caught:
        await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    assert "rsync: something odd" in caught.value.message
    assert hint in caught.value.hint


async def test_without_python_rsync_copies_and_it_is_reported() -> None:
    """Nothing is installed on a node for a copy: what is there is used, and it is slower."""
    here = staged(make_scene())
    here.nodes[0].on(is_push, ["sh: 1: python3: not found", "\x1eend 127"])
    cluster_state = state_with_checkpoints(WHOLE, NONE)
    assert await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    copies = [command for command in here.nodes[0].commands if command.changes.startswith("copy")]
    assert [is_push(command) for command in copies] == [True, False]
    assert [n.text for n in here.sink.of(Notice) if "rsync" in n.text] == [
        "spark-1 or spark-2 has no python3: weights are copied by rsync, over one connection"
    ]


@pytest.mark.parametrize(
    ("limit", "running", "sent"),
    [(0, False, (0, False)), (0, True, (500_000_000, True)), (9_000_000, True, (9_000_000, True))],
    ids=["alone", "next to an engine", "limit of the cluster file"],
)
async def test_next_to_an_engine_that_serves_a_copy_yields(limit: int, running: bool, sent: tuple[int, bool]) -> None:
    """Another model's ranks on either node: it takes what they leave, at a limited rate, and it is reported."""
    here = staged(make_scene())
    if running:
        here.nodes[1].ranks["/other"] = Rank({"deployment": "other", "rank": "0"}, ())
    services = replace(here.services, cluster=replace(here.services.cluster, transfer=Transfer(limit=limit)))
    await stage_model(
        services, plan(real_recipe(), state_with_checkpoints(WHOLE, NONE)), state_with_checkpoints(WHOLE, NONE)
    )
    (copy,) = filter(is_push, here.nodes[0].commands)
    asked = json.loads(next(word for word in copy.argv if word.startswith("{")))
    assert (asked["limit"], asked["yields"]) == sent
    assert any("serves on spark-2" in told.text for told in here.sink.of(Notice)) == running


def is_push(command: Command) -> bool:
    return command.changes.startswith("copy") and command.stdin is not None


async def test_what_is_still_not_whole_afterwards_is_an_error() -> None:
    """An engine would find the gap after minutes of loading."""
    here = staged(make_scene())
    here.nodes[1].on(is_listing, f"path\t{ROOT}/snapshots/abc\nroot\t{ROOT}\nrevision\tabc\n")
    cluster_state = state_with_checkpoints(WHOLE, NONE)
    with pytest.raises(CommandFailed) as caught:
        await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    assert caught.value.node == "spark-2"
    assert "still not complete" in caught.value.message


async def test_what_nobody_has_is_fetched_once_with_a_token_that_does_not_show() -> None:
    """The head fetches it; the other node gets it from there. The token is in no command line."""
    here = staged(make_scene(secrets={"HF_TOKEN": Secret("hf_secret")}))
    here.nodes[0].on(wrapped("hf download"), ["1 bytes", "\x1eend 0"])
    cluster_state = state_with_checkpoints(NONE, NONE)
    await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    (fetch,) = [command for command in here.nodes[0].commands if "hf download" in command.changes]
    assert "hf_secret" not in " ".join(fetch.argv)
    assert not [command for command in here.nodes[1].commands if "hf download" in command.changes]
    assert [command for command in here.nodes[0].commands if command.changes.startswith("copy")]


@pytest.mark.parametrize(("code", "told"), [(127, "there is no `hf`"), (1, "`hf download` failed: 401 Unauthorized")])
async def test_a_download_that_fails_reports_why(code: int, told: str) -> None:
    """No client and no rights are two things."""
    here = staged(make_scene())
    here.nodes[0].on(wrapped("hf download"), ["401 Unauthorized", f"\x1eend {code}"])
    cluster_state = state_with_checkpoints(NONE, NONE)
    with pytest.raises(CommandFailed) as caught:
        await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    assert told in caught.value.message


@pytest.mark.parametrize("stage", [stage_model, stage_image])
async def test_a_node_that_was_not_asked_is_not_sent_what_it_may_have(stage: Any) -> None:
    """Guards 160 GB: a node too slow to answer once lacked model and image, and both were fetched again."""
    here, given = make_scene(), real_recipe()
    for node in here.nodes:
        node.on(lambda command: True, CommandFailed(node.name, "no answer within 10 s"))
    unasked = await gather_stock(here.services, here.services.cluster.ordered, given)
    there = replace(state_with_checkpoints(), checkpoints=unasked.checkpoints)
    given = replace(given, engine=replace(given.engine, runtime=Runtime.DOCKER, image="engine:1"))
    with pytest.raises(CommandFailed, match="no answer within 10 s") as caught:
        await stage(here.services, plan(given, there), there)
    assert "nothing is copied or fetched" in caught.value.message


async def test_nothing_lacking_is_nothing_done() -> None:
    """Not a single command."""
    here = make_scene()
    cluster_state = state_with_checkpoints(WHOLE, WHOLE)
    assert not await stage_image(here.services, plan(real_recipe(), cluster_state), cluster_state)
    assert not await stage_model(here.services, plan(real_recipe(), cluster_state), cluster_state)
    assert not any(node.commands for node in here.nodes)


async def test_an_image_of_ones_own_is_built_and_never_pulled() -> None:
    """No registry has it: the verb that makes it is named, instead of a registry's refusal minutes later."""
    here, given = make_scene(), recipe("deepseek-v4-flash-built")
    cluster_state = state_with_checkpoints(WHOLE, WHOLE)
    wanted = plan(given, cluster_state)
    assert "image: on no node; `sparkwright build deepseek-v4-flash-built` makes it" in staging_text(
        wanted, cluster_state
    )
    with pytest.raises(CommandFailed) as caught:
        await stage_image(here.services, wanted, cluster_state)
    assert "`sparkwright build deepseek-v4-flash-built`" in caught.value.hint
    assert not [command for node in here.nodes for command in node.commands]


def has_image(here: ClusterScene, reference: str, *ids: str) -> ClusterScene:
    """Sets the nodes' reports of the image after a copy; '' for a node that has none."""
    for node, found in zip(here.nodes, ids, strict=True):
        node.on(lambda c: c == staging.inspect_image(reference), f"{found} 9\n" if found else Completed(1, ""))
    return here


@pytest.mark.parametrize(
    ("arrived", "told", "hint"),
    [
        ("sha256:b", "is sha256:b there and sha256:a on spark-1", "Storage Driver"),
        ("", "still not there after staging", ""),
    ],
    ids=["another", "none"],
)
async def test_a_copied_image_is_the_sources(arrived: str, told: str, hint: str) -> None:
    """Two ranks of one deployment never run two images, whatever `docker load` made of the copy."""
    given = recipe(profile="docker")
    here = has_image(staged(make_scene()), given.engine.image, "sha256:a", arrived)
    cluster_state = state_with_checkpoints(images={"spark-1": ("sha256:a", 9)})
    with pytest.raises(CommandFailed) as caught:
        await stage_image(here.services, plan(given, cluster_state), cluster_state)
    assert caught.value.node == "spark-2"
    assert told in caught.value.message and hint in caught.value.hint


async def test_the_same_image_on_both_is_well() -> None:
    """Its id is what counts; the plan is to be made again."""
    given = recipe(profile="docker")
    here = has_image(staged(make_scene()), given.engine.image, "sha256:a", "sha256:a")
    cluster_state = state_with_checkpoints(images={"spark-1": ("sha256:a", 9)})
    assert await stage_image(here.services, plan(given, cluster_state), cluster_state)
