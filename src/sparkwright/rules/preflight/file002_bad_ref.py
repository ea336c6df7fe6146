"""refs/main of a model in the hub cache is wrong.

Detects: a refs/main that ends with a newline or names a snapshot that is not there. With a recipe, its own model's
  is MODEL005's.
Why: without internet the hub's client finds a model by that text alone: `Cannot find an appropriate cached snapshot`.
Evidence: the entry, and what stands in the file.
Remedy: the snapshot's name without a newline. The fix takes only the newline away.
References: huggingface_hub's cache layout.
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import Ref
from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote.repair import ref_fix
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "FILE002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "refs/main of a model in the hub cache is wrong"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        for store in known(facts.stores) or ():
            for ref in store.refs:
                if ref.text != ref.text.strip() or not ref.there:
                    yield _finding(facts.node, store.path, ref)


def _finding(node: str, store: str, ref: Ref) -> Finding:
    name = ref.entry.removeprefix("models--").replace("--", "/")
    bare = ref.text.strip()
    blank = bare != ref.text
    return Finding(
        CODE,
        SEVERITY,
        node,
        f"{name} cannot be found offline",
        f"{store}/{ref.entry}/refs/main: {ref.text!r}"
        + ("" if ref.there else ", no such snapshot")
        + (", ends with a newline" if blank else ""),
        "the entry was made by hand, or copied in part",
        f"on {node}: printf %s {bare if ref.there else 'SNAPSHOT'} > {store}/{ref.entry}/refs/main",
        ref_fix(node, store, ref.entry, ref.text) if blank and ref.there else None,
    )
