"""More nodes than one replica takes are answered with groups."""

from dataclasses import replace

import pytest

from sparkwright.app.plan.estimate import EstimateRequest
from sparkwright.app.plan.fleet import compare_fleets, estimate_fleet, wants_groups
from sparkwright.cli.plan_estimate import fleet_text
from sparkwright.domain.errors import UsageError
from unit.app.scene import make_scene, recipe

MINIMAX = recipe("minimax-m2.7-nvfp4")
SIZE = MINIMAX.nodes


async def test_sixteen_nodes_are_groups_of_the_recipe_s_own_size() -> None:
    asked = EstimateRequest(recipe=MINIMAX, nodes=16)
    found = await estimate_fleet(make_scene().services, asked)
    assert (found.replicas, found.size, found.left) == (16 // SIZE, SIZE, 16 % SIZE)
    (alone,) = [one.decode_all for one in found.one.plan.speeds if one.load.concurrency > 1]
    assert found.together and found.together.value == pytest.approx(alone.value * found.replicas)
    text = fleet_text(found)
    assert (
        text.startswith(f"{found.replicas} replicas of {SIZE} nodes each") and "if requests are spread evenly" in text
    )


async def test_nodes_that_are_left_over_are_told() -> None:
    found = await estimate_fleet(make_scene().services, EstimateRequest(recipe=MINIMAX, nodes=2 * SIZE + 1), replicas=2)
    assert (found.replicas, found.left) == (2, 1) and "left over: 1 node" in fleet_text(found)


async def test_too_few_nodes_for_so_many() -> None:
    with pytest.raises(UsageError, match=f"too few for 2 replicas of {SIZE} nodes: {2 * SIZE - 1} nodes"):
        await estimate_fleet(make_scene().services, EstimateRequest(recipe=MINIMAX, nodes=2 * SIZE - 1), replicas=2)

    wide = replace(MINIMAX, nodes=16, parallelism=replace(MINIMAX.parallelism, tp=16))
    with pytest.raises(UsageError, match="too few for one replica of 16 nodes: 9 nodes"):
        await estimate_fleet(make_scene().services, EstimateRequest(recipe=wide, nodes=9))


@pytest.mark.parametrize(
    ("nodes", "tp", "replicas", "groups"),
    [(8, 0, 0, False), (9, 0, 0, True), (16, 16, 0, False), (4, 0, 2, True)],
)
def test_when_groups_answer(nodes: int, tp: int, replicas: int, groups: bool) -> None:
    assert wants_groups(nodes, tp, replicas) is groups


async def test_the_same_nodes_in_groups_of_other_sizes() -> None:
    """Guards a choice without an alternative: larger groups answer one user faster, more groups carry more."""
    found = await estimate_fleet(make_scene().services, EstimateRequest(recipe=MINIMAX, nodes=16), compared=True)
    sizes = [(one.replicas, one.size) for one in found.others]
    assert sizes[0] == (found.replicas, SIZE) and (2, 8) in sizes and len(set(sizes)) == len(sizes)
    fitting = [one for one in found.others if one.size >= SIZE]
    alone = [one.alone.value for one in fitting if one.alone]
    assert len(alone) == len(fitting) and alone == sorted(alone)
    assert all(one.streams == one.replicas * MINIMAX.serving.sequences for one in fitting)
    text = fleet_text(found)
    assert "2 replicas of 8 nodes each" in text and f"{found.streams:,} streams" in text


async def test_a_number_of_replicas_is_not_compared() -> None:
    found = await estimate_fleet(make_scene().services, EstimateRequest(recipe=MINIMAX, nodes=16), 2, compared=True)
    assert not found.others


async def test_a_recipe_too_large_for_its_own_nodes_gets_larger_groups() -> None:
    """Guards the answer for 16 nodes: a model that is too large for one of them was never judged on several."""
    small = replace(MINIMAX, nodes=1, parallelism=replace(MINIMAX.parallelism, tp=1, pp=1, dp=1))
    found = await estimate_fleet(make_scene().services, EstimateRequest(recipe=small, nodes=16))
    assert found.size > 1 and found.replicas == 16 // found.size
    (row,) = await compare_fleets(make_scene().services, [EstimateRequest(recipe=small, nodes=16)])
    assert row.replicas == found.replicas and row.plan and row.plan.verdict == found.one.plan.verdict
