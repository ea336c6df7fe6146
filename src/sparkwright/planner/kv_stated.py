"""The KV cache of a model whose dimensions are only stated by a recipe's author: layers, heads, or bytes of a token."""

from sparkwright.domain.ledger import KvCapacity
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.kv_numbers import number

_HIDDEN = 4  # times fewer bytes: layers with windows, compressed or shared caches, of which no author tells
_DRAFTED = 1.25  # times more with drafts, whose layers have a cache, too


def token_bytes(recipe: Recipe) -> tuple[int, int] | None:
    """(least, most) bytes of one token on one rank; None where the author states too little."""
    said, split = recipe.model.stated, recipe.parallelism
    if said is None:
        return None
    per_number = number(recipe.serving.kv_dtype or said.kv_dtype)
    whole = said.kv_bytes or 2 * said.layers * (said.kv_heads or said.heads) * said.head_dim * per_number
    if not whole:
        return None
    shares = min(split.tp, said.kv_heads or split.tp) * split.pp
    most = whole / shares * (_DRAFTED if recipe.speculation.method else 1)
    return int(whole / shares / _HIDDEN), int(most)


def stated_needed(recipe: Recipe) -> tuple[int, int] | None:
    """(least, most) bytes of one sequence of full length on one rank; None where they or the context are not known."""
    context, each = recipe.serving.context, token_bytes(recipe)
    return (each[0] * context, each[1] * context) if each and context else None


def stated_capacity(recipe: Recipe, kv_bytes: int) -> KvCapacity | None:
    """The capacity of `kv_bytes` on one rank, with the range that the author's words leave; None without any."""
    each, context = token_bytes(recipe), recipe.serving.context
    if not each or kv_bytes <= 0:
        return None
    tokens, most = kv_bytes // each[1], kv_bytes // max(each[0], 1)
    why = f"{each[1]:,} bytes a token by what the recipe's author states: {tokens:,} to {most:,} tokens"
    return KvCapacity(
        kv_bytes,
        reported=tokens,
        tokens=tokens,
        sequences=tokens / context if context else 0.0,
        per_sequence=each[1] * context,
        why=(why,),
        low=tokens,
        high=most,
        doubts=(why,),
    )
