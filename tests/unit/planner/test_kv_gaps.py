"""A model that is recognized by half: its cache is not counted, and the reason names what is missing."""

from dataclasses import replace

from sparkwright.domain.model import ModelShape
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.kv_layout import missing_value
from unit.for_each import for_each
from unit.planner.kv_samples import CONFIGS, model_shape, recipe

V41 = model_shape("deepseek-v4.1-flash")


@for_each("model, missing", [
    (replace(V41, compress=(), index_layers=0), "how KV is compressed"),
    (replace(V41, compress=(), index_layers=0, rope_dim=0), "how many tokens share an entry"),
    (replace(model_shape("glm-5.2"), latent=0), "the width of a latent row"),
    (replace(model_shape("deepseek-v3.2"), index_layers=0), "rows of an indexer"),
    (replace(model_shape("minimax-m3"), index_layers=0), "rows of an indexer"),
    (replace(model_shape("qwen3.6-35b-a3b"), state_layers=0), "a state instead of KV"),
])  # fmt: skip
def test_what_is_left_out_of_a_shape_is_missed(model: ModelShape, missing: str) -> None:
    """Guards against figures such as 162,822 tokens for V4.1 in 10 GiB, from a shape without its compression."""
    assert missing in missing_value(model)
    found = capacity(recipe(131072), model, 10 << 30)
    assert (found.reported, found.tokens) == (0, 0)
    assert missing in found.unknown


@for_each("path", sorted(CONFIGS.glob("*.config.json")), ids=lambda path: path.name.split(".config")[0])
def test_a_whole_config_leaves_no_gap(path) -> None:
    """Guards the remedies against crying wolf: what is read from a config is complete, but for V4.1's ratios."""
    missing = missing_value(model_shape(path.name.removesuffix(".config.json")))
    assert missing == "" or ("v4.1" in path.name and "its pages are not known" in missing)


def test_a_family_that_is_not_known_has_a_wide_range() -> None:
    """Guards a width of zero for a model of which nobody knows what it keeps."""
    known = model_shape("qwen3-8b")
    exact, wide = (capacity(recipe(32768), shape, 10 << 30) for shape in (known, replace(known, loose=True)))
    assert exact.tokens == wide.tokens and (wide.low or 0) <= exact.tokens // 2 and (wide.high or 0) >= 4 * exact.tokens
