"""A node with a few bytes of a model whose size the recipe states."""

from dataclasses import replace

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, MIB
from sparkwright.planner.parallelism import advise
from sparkwright.planner.weights import rank_weights
from unit.checks.samples import CLUSTER
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe

SHAPE = model_shape("minimax-m2.7-nvfp4")
SIZE = 122 * GIB


def stated(size: int) -> Recipe:
    made = recipe(SHAPE, tp=2)
    return replace(made, nodes=2, model=replace(made.model, size=size))


def held_files(size: int) -> Checkpoint:
    return Checkpoint("/models/m", "/models/m", "", size, 1, weights=size, shape=SHAPE)


@for_each("size, files, node", [(SIZE, 40 * MIB, "spark-2"), (SIZE, SIZE, ""), (0, 40 * MIB, "")])
def test_a_node_with_too_few_bytes_is_named_where_the_plan_counts_a_stated_size(
    size: int, files: int, node: str
) -> None:
    """Guards that the plan counts model.size, and that the node whose files cannot be the model is a finding."""
    of, there = stated(size), {"spark-1": held_files(SIZE), "spark-2": held_files(files)}
    context = Context(CLUSTER, {}, of, checkpoints=there, advice=advise(of, there))
    assert [found.subject for found in check_all(context) if found.code == "MODEL015"] == ([node] if node else [])
    weighed = rank_weights(of, SHAPE, there["spark-2"])
    assert weighed.known is bool(size) and (weighed.bytes > 50 * GIB) is bool(size)
