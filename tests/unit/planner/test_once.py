"""The cached arithmetic of a recipe: used for the same recipe only, whatever the size of its KV pool."""

from dataclasses import replace

from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving, Speculation
from sparkwright.planner.ledger import ledger, ledgers
from sparkwright.planner.once import compute_once
from unit.for_each import for_each
from unit.planner.memory_samples import gb10_node, model_shape, recipe

BASE = Recipe("m", "", Model("org/m"), EngineChoice("vllm", "0.21.0"), flags={"enforce-eager": True})


class Counter:
    """Work that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, _: Recipe, times: int = 1) -> int:
        self.done += times
        return self.done


def test_the_same_is_worked_out_once() -> None:
    """The memory fraction and pinned KV change nothing; other arguments do."""
    work = Counter()
    kept = compute_once(work)
    serving = Serving(memory_fraction=0.8, kv_cache_bytes=7)
    assert [kept(BASE), kept(BASE), kept(replace(BASE, serving=serving)), kept(BASE, 5)] == [1, 1, 1, 6]


@for_each(
    "changes",
    [
        {"nodes": 2},
        {"parallelism": Parallelism(tp=2)},
        {"serving": Serving(context=4096)},
        {"serving": Serving(sequences=4)},
        {"serving": Serving(batched_tokens=512)},
        {"serving": Serving(kv_dtype="fp8")},
        {"engine": EngineChoice("vllm-ray", "0.21.0")},
        {"engine": EngineChoice("vllm", "0.20.2")},
        {"model": Model("org/m", size=1)},
        {"speculation": Speculation("mtp", 1)},
        {"env": {}},
        {"flags": {"enforce-eager": 1}},
    ],
    ids=str,
)
def test_another_recipe_is_worked_out_again(changes: dict[str, object]) -> None:
    """All that the arithmetic reads; a flag of 1 is not one of true, though Python calls them equal."""
    kept = compute_once(Counter())
    assert [kept(BASE), kept(replace(BASE, **changes))] == [1, 2]  # type: ignore[arg-type]


def test_work_that_reads_one_limit_is_asked_again_for_that_one_only() -> None:
    """Weights hang on batched tokens alone: a search over contexts and sequences counts them once."""
    kept = compute_once(Counter(), limits=lambda one: one.serving.batched_tokens)
    others = replace(BASE, serving=Serving(context=4096, sequences=4, kv_dtype="fp8"))
    batch = replace(BASE, serving=Serving(batched_tokens=512))
    assert [kept(BASE), kept(others), kept(batch)] == [1, 1, 2]


def test_each_node_has_the_ledger_that_it_has_alone() -> None:
    """Nodes that are alike are counted once; one with less free, or with other work on it, is not among them."""
    given = recipe(model_shape("minimax-m2.7-nvfp4"), tp=4, nodes=4, serving={"context": 65536, "memory_fraction": 0.8})
    taken = {"a": 6.0, "b": 9.0, "c": 6.0, "d": 6.0}
    facts = {name: replace(gb10_node(size), node=name) for name, size in taken.items()}
    found = ledgers(given, facts, {}, list(facts), "big")
    assert found == tuple(ledger(given, each, None, 4, "big") for each in facts.values())
    assert [one.node for one in found] == list(facts) and found[1].free < found[0].free == found[2].free
