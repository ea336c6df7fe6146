"""The way from config.json on a node to the plan's report on the split."""

import json
from dataclasses import replace

from sparkwright.app.plan.planning import make_plan
from sparkwright.app.services import ClusterState
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Completed
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.recipe import Parallelism
from sparkwright.facts.checkpoint import parse
from unit.app.plan.test_plan import state_of_nodes
from unit.app.scene import make_scene, recipe, request

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
    "hidden_size": 512, "head_dim": 64, "intermediate_size": 1536, "vocab_size": 8000, "torch_dtype": "bfloat16",
}  # fmt: skip


def listed(**changes: object) -> Checkpoint:
    """A model folder as remote.staging lists it."""
    rows = ["path\t/m", "root\t/m", "revision\t", "file\t900\tmodel.safetensors", "file\t700\tconfig.json"]
    checkpoint = parse(Completed(0, "\n".join([*rows, f"config\t{json.dumps(CONFIG | changes)}"]), ""))
    assert isinstance(checkpoint, Checkpoint) and checkpoint.complete
    return checkpoint


def planned(checkpoint: Checkpoint, split: Parallelism) -> Plan:
    cluster_state = replace(state_of_nodes("spark-1", "spark-2"), checkpoints={"spark-1": checkpoint})
    return make_plan(make_scene().services, request(recipe=replace(recipe(), parallelism=split)), cluster_state)


def stopping_codes(plan: Plan) -> list[str]:
    return [finding.code for finding in stopping(plan, "")]


def test_the_shape_of_the_staged_model_judges_the_split() -> None:
    """Guards bad input: heads that tp does not divide are named by a plan that has read no weights."""
    good, bad = planned(listed(), Parallelism(2)), planned(listed(num_attention_heads=9), Parallelism(2))
    assert good.advice and good.advice.chosen and good.advice.chosen.cost
    assert good.advice.source == "config.json on spark-1"
    assert "PAR001" not in stopping_codes(good) and "PAR001" in stopping_codes(bad)


def test_weights_that_the_engine_cannot_read_stop_the_plan() -> None:
    """Guards bad input: the method in config.json is looked up in the data of the engine's version."""
    bad = planned(listed(quantization_config={"quant_method": "exl3", "bits": 4}), Parallelism(2))
    assert "ENG030" in stopping_codes(bad)


def test_without_files_the_plan_reports_that_it_does_not_know() -> None:
    """Guards that nothing is guessed from the model's name."""
    plan = make_plan(
        make_scene().services, request(recipe=recipe()), ClusterState(state_of_nodes("spark-1", "spark-2").facts)
    )
    assert plan.advice and plan.advice.source == "" and "no node has its config.json" in plan.advice.why
