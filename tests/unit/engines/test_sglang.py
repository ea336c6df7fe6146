"""SGLang's ranks: how our words become its own, where its key is, and what is refused before the start."""

from dataclasses import replace

import pytest

from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime, Speculation
from sparkwright.engines.catalog import engine
from sparkwright.engines.flags import check_flags
from unit.engines.samples import hub_context, placement, sglang_recipe

TWO = replace(sglang_recipe(Runtime.DOCKER), speculation=Speculation())
VERSIONS = ("0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.20", "0.5.23")


def render_ranks(recipe: Recipe) -> tuple[RankSpec, ...]:
    return engine("sglang").render(recipe, placement(recipe.nodes), hub_context())


def options(recipe: Recipe) -> dict[str, str]:
    """The head's options; a flag without a value has ''."""
    words = render_ranks(recipe)[0].engine_words
    named = [(w, *words[i + 1 : i + 2]) for i, w in enumerate(words) if w.startswith("--")]
    return {name[2:]: "" if not rest or rest[0].startswith("--") else rest[0] for name, *rest in named}


def finding_codes(recipe: Recipe) -> list[str]:
    return [finding.code for finding in engine("sglang").check(recipe)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_that_was_read_has_our_options(version: str) -> None:
    """The options that render writes with everything in use are known to each wheel, experts and attention replicas
    included."""
    recipe = sglang_recipe(Runtime.DOCKER, version)
    recipe = replace(recipe, parallelism=Parallelism(dp=2, ep=True))
    found = check_flags("sglang", version, render_ranks(recipe)[0].engine_words)
    assert [f for f in found if f.severity.stops] == []


def test_the_key_is_in_a_file_of_the_head_and_nowhere_else() -> None:
    """SGLang reads no key from its environment; argv, worker and repr must not show it."""
    head, worker = render_ranks(TWO)
    (secret,) = [file.secret for file in head.files if file.secret]
    assert secret.reveal() == '{"api-key": "k-123"}'
    assert not worker.files
    assert "k-123" not in f"{head} {worker}"


def test_replicas_divide_the_attention_in_the_words_of_the_version() -> None:
    """dp 2 of tp 1 is two GPUs of one group; 0.5.23 gave that a name of its own."""
    split = replace(TWO, parallelism=Parallelism(dp=2, ep=True))
    new, old = options(split), options(replace(split, engine=replace(split.engine, version="0.5.20")))
    assert (new["tp-size"], new["attn-dp-size"], new["ep-size"]) == ("2", "2", "2")
    assert "dp-size" not in new
    assert (old["tp-size"], old["dp-size"], old["enable-dp-attention"]) == ("2", "2", "")


@pytest.mark.parametrize(
    ("method", "tokens", "wanted"),
    [
        ("mtp", 3, {"algorithm": "NEXTN", "num-steps": "3", "eagle-topk": "1", "num-draft-tokens": "4"}),
        ("eagle3", 2, {"algorithm": "EAGLE3", "num-steps": "2", "eagle-topk": "1", "num-draft-tokens": "3"}),
        ("ngram", 5, {"algorithm": "NGRAM", "num-draft-tokens": "5"}),
        ("dspark", 5, {"algorithm": "DSPARK", "dspark-block-size": "5"}),
    ],
)
def test_drafts_are_counted_as_each_algorithm_counts(method: str, tokens: int, wanted: dict[str, str]) -> None:
    """Our `tokens` are drafts a step; a chain verifies one more."""
    given = options(replace(TWO, speculation=Speculation(method, tokens)))
    assert {k.removeprefix("speculative-"): v for k, v in given.items() if k.startswith("speculative-")} == wanted


def test_a_drafter_and_options_of_the_recipe_win() -> None:
    """`model` is the drafter's place; what the recipe reports about steps is not overwritten."""
    spec = Speculation("eagle3", 2, {"model": "/d", "num_steps": 7})
    given = options(replace(TWO, speculation=spec))
    assert (given["speculative-draft-model-path"], given["speculative-num-steps"]) == ("/d", "7")


def test_a_worker_answers_health_to_its_own_node_only() -> None:
    """Its server reports 200 whatever happens, and nobody else has business there."""
    worker = render_ranks(TWO)[1]
    assert worker.engine_words[worker.engine_words.index("--host") + 1] == "127.0.0.1"
    assert worker.listens == (("127.0.0.1", 8000),)


def test_what_sglang_cannot_do_is_named() -> None:
    """Each refusal means itself, and a sound recipe has none."""
    sound = replace(TWO, flags={"disable-cuda-graph": True})
    assert finding_codes(sound) == []
    staged = replace(sound, parallelism=Parallelism(pp=2), speculation=Speculation("mtp", 1))
    assert finding_codes(staged) == ["ENG024"]
    assert finding_codes(replace(sound, serving=replace(sound.serving, kv_cache_bytes=1 << 30))) == ["ENG025"]
    assert finding_codes(replace(sound, flags={})) == ["ENG026"]
    own = replace(sound.engine, entrypoint=("sglang", "serve"))
    keyed = replace(sound, engine=own, serving=replace(sound.serving, api_key_env="KEY"))
    assert finding_codes(keyed) == ["ENG027"]
    assert finding_codes(replace(sound, flags={**sound.flags, "dist-init-addr": "a:1"})) == ["ENG013"]


def test_an_entrypoint_of_the_recipe_is_left_alone() -> None:
    """Images differ in how they start; the key still comes by file."""
    own = replace(TWO, engine=replace(TWO.engine, entrypoint=("sglang", "serve")))
    head = render_ranks(own)[0]
    assert (head.entrypoint, head.argv[0]) == (("sglang", "serve"), "--model-path")
    assert "--config" in head.argv
