"""What speculation adds to the cache: layers of the draft, and slots for the states of drafted tokens."""

from collections.abc import Iterator

from sparkwright.domain.kv import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe

# Drafts that are made without a model have no cache.
_MODELLESS = ("", "ngram", "ngram_gpu", "suffix", "prompt_lookup", "medusa", "mlp_speculator")
# A draft model of its own, whose config the recipe does not hold.
_ITS_OWN = ("dflash", "dflash2", "draft_model", "standalone")
# Published DFlash drafts for GQA models of 26-36 B have 8 layers (5 for small ones); for MLA models DFlash2 keeps a
# window of 2048 tokens. Their cache is in the model's own type. Of other pairs nothing is published that would tell: a
# build with DFlash for an MLA model has room for 0.37 of what such a window leaves.
_OWN_LAYERS = 8
_OWN_WINDOW = 2048
_DSPARK_LAYERS = 3  # DeepSeek V4's DSpark reads layers 40 to 42 and keeps a window for each of its own three


def drafted(recipe: Recipe) -> int:
    """Tokens drafted a step: hybrids keep a state for each of them."""
    return recipe.speculation.tokens if recipe.speculation.method else 0


def indexed_layers(recipe: Recipe, shape: ModelShape) -> int:
    """Drafted layers that are like the model's own: they have rows of its indexer, too."""
    method = recipe.speculation.method.lower()
    inside = "mtp" in method or method == "nextn" or (method == "eagle" and recipe.engine.name == "sglang")
    return own_layers(recipe, shape) if inside else 0


def own_layers(recipe: Recipe, shape: ModelShape) -> int:
    """Drafted layers that cache like the model's: MTP inside the checkpoint, one of EAGLE, three of DSpark."""
    method = recipe.speculation.method.lower()
    if method in _MODELLESS or method in _ITS_OWN:
        return 0
    if method == "dspark":
        return _DSPARK_LAYERS
    if method.startswith("eagle") and recipe.engine.name != "sglang":
        return 1
    # A block of such models is attention or FFN: a drafted layer is one of each.
    return max(1, -(-shape.mtp_layers // 2) if shape.single_blocks else shape.mtp_layers)


def unknown(recipe: Recipe, shape: ModelShape) -> str:
    """Why nobody here knows what drafts keep; '' where it is known, or assumed after published ones."""
    method = recipe.speculation.method.lower()
    if method not in _ITS_OWN or method == "dflash2" or (method == "dflash" and not shape.latent):
        return ""
    return f"{method}: a draft model of its own, whose layers are not known"


def assumed(recipe: Recipe, shape: ModelShape) -> str:
    """What is taken to be true of another model that drafts; '' without one."""
    method = recipe.speculation.method.lower()
    if method not in _ITS_OWN:
        return ""
    what = f"a window of {_OWN_WINDOW} tokens" if shape.latent else f"{_OWN_LAYERS} layers as wide as the model's"
    return f"{method}: a draft model of its own, not known; assumed {what}"


def foreign(recipe: Recipe, shape: ModelShape, row: float) -> Iterator[CacheLayers]:
    """Layers of a draft model that nothing is known of: assumed. row: of a full-attention layer of the model."""
    why = assumed(recipe, shape)
    if not why:
        return
    if shape.latent:
        yield CacheLayers(CacheKind.WINDOW, 1, row, window=_OWN_WINDOW, why=why)
    else:
        yield CacheLayers(CacheKind.FULL, _OWN_LAYERS, row, why=why)
