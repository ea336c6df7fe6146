"""Downloads of models were left unfinished in the hub cache.

Detects: *.incomplete files in the cache. With a recipe, its own model's are MODEL004's.
Why: they hold room, and a model of which they are a part is not whole.
Evidence: how many, of how much, and the largest.
Remedy: fetch the model again (it goes on where it stopped), or remove them.
References: huggingface_hub's download writes to NAME.incomplete and renames.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import gib
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "FILE001"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "unfinished downloads lie in the hub cache"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        for store in known(facts.stores) or ():
            if store.partial:
                largest = max(store.partial, key=lambda name: store.partial[name])
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{len(store.partial)} unfinished download{'' if len(store.partial) == 1 else 's'} in {store.path}",
                    f"{gib(sum(store.partial.values()))}; the largest: {largest} {gib(store.partial[largest])}",
                    "a download was cut off, or is still running",
                    f"hf download MODEL goes on with it; or: find {store.path} -name '*.incomplete' -delete",
                )
