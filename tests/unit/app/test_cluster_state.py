"""Everything that a plan is made from, asked of all nodes at once."""

from dataclasses import replace

import pytest

from sparkwright.app.cluster_state import gather_state, model_path, nodes_for
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import CommandFailed, NodeError, RecipeError, Unreachable
from sparkwright.domain.recipe import Speculation
from unit.app.scene import make_scene, recipe


async def test_a_survey_has_facts_model_and_image_of_every_node() -> None:
    """The three things a plan inspects; an image that a node lacks has no entry."""
    here = make_scene()
    here.nodes[0].on("docker image inspect", "sha256:abc 123456\n")
    here.nodes[1].on("docker image inspect", Completed(1, ""))
    here.nodes[0].on("snapshots", "path\t\nroot\t/r\nrevision\t\n")
    wanted = recipe(profile="docker")
    found = await gather_state(here.services, nodes_for(here.services, wanted), wanted)
    assert set(found.facts) == {"spark-1", "spark-2"}
    assert found.images == {"spark-1": ("sha256:abc", 123456)}
    assert found.checkpoints["spark-1"] == Checkpoint("", "/r", "", 0, 0)


async def test_a_survey_changes_nothing() -> None:
    """It comes before any lease."""
    here = make_scene()
    await gather_state(here.services, nodes_for(here.services, recipe()), recipe())
    assert not any(node.changes or node.files for node in here.nodes)


async def test_every_lost_node_is_named_in_one_error() -> None:
    """Two cables may be out; the first error has the hint, the message has both."""
    here = make_scene()
    for node in here.nodes:
        node.on(lambda command: True, Unreachable(node.name, "connection refused", "is sshd running?"))
    with pytest.raises(Unreachable) as caught:
        await gather_state(here.services, nodes_for(here.services, recipe()), recipe())
    assert caught.value.message.splitlines() == ["spark-1: connection refused", "spark-2: connection refused"]
    assert (caught.value.hint, caught.value.exit_code) == ("is sshd running?", 3)


async def test_a_node_that_answers_wrongly_is_no_lost_node() -> None:
    """No room for temporary files is not a broken connection, and has another exit code."""
    here = make_scene()
    here.nodes[1].on(lambda command: True, CommandFailed("spark-2", "no place for temporary files", "free space"))
    with pytest.raises(NodeError) as caught:
        await gather_state(here.services, nodes_for(here.services, recipe()), recipe())
    assert "no place for temporary files" in caught.value.message
    assert not isinstance(caught.value, Unreachable)


def test_a_recipe_takes_the_head_and_as_many_as_it_wants() -> None:
    """The nodes come in the order of the cluster file, head first."""
    services = make_scene(3).services
    assert [node.name for node in nodes_for(services, recipe())] == ["spark-1", "spark-2"]
    with pytest.raises(RecipeError) as caught:
        nodes_for(make_scene(1).services, recipe())
    assert "add nodes to the cluster file" in caught.value.hint


@pytest.mark.parametrize(
    ("path", "wanted"), [("/m/a", "/m/a"), ("~/a.gguf", "~/a.gguf"), ("a/b.gguf", "/home/ai/models/a/b.gguf")]
)
def test_a_models_path_is_absolute_from_home_or_below_the_models_folder(path: str, wanted: str) -> None:
    """The path follows the reference's statement."""
    given = replace(recipe(), model=replace(recipe().model, path=path))
    assert model_path(make_scene().services.cluster.nodes[0], given) == wanted


@pytest.mark.parametrize("name", ["z-lab/draft", "/models/draft", "nowhere", ""])
async def test_a_draft_model_is_read_where_a_node_has_it(name: str) -> None:
    """The draft is found by a hub id or a folder; its own layers then count in place of assumed ones."""
    here = make_scene()
    config = '{"num_hidden_layers": 3, "num_attention_heads": 8, "hidden_size": 1024}'
    here.nodes[0].on(lambda one: "draft" in " ".join(one.argv), f"path\t/draft\nroot\t/draft\nconfig\t{config}\n")
    drafted = Speculation(method="draft_model", tokens=4, options={"model": name})
    wanted = replace(recipe(), speculation=drafted)
    found = await gather_state(here.services, nodes_for(here.services, wanted), wanted)
    assert (found.draft.layers if found.draft else 0) == (3 if "draft" in name else 0)
