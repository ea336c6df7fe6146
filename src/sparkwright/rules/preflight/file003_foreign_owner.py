"""Files in the model folders belong to somebody else.

Detects: something in the folder of models or the hub cache, three levels deep, that the ssh user does not own.
Why: containers that ran as root left them; downloads and copies then end with `Permission denied`, half-way.
Evidence: the first such file and its owner.
Remedy: give them to the user. Not done by itself, and of the folder of models only told: it may be shared on purpose.
References: https://github.com/chenboju/dgx-spark-serving; https://github.com/luisefigueroa/pulsar-gb10-vllm-stack
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, node_of, simulated
from sparkwright.rules.rule import Context

CODE = "FILE003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "files in the model folders belong to another user"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        identity = known(facts.identity)
        for store in known(facts.stores) or ():
            owner, _, path = store.foreign.partition(" ")
            if path and identity and identity.user not in (owner, "root"):
                yield Finding(
                    CODE,
                    SEVERITY if _written_by_clients(context, facts.node, store.path) else Severity.INFO,
                    facts.node,
                    f"{owner} owns files in {store.path}",
                    f"{path}: owner {owner}, not {identity.user}",
                    "a container that ran as another user wrote there",
                    f"on {facts.node}: sudo chown -R {identity.user}: {store.path}",
                )


def _written_by_clients(context: Context, node: str, path: str) -> bool:
    """The hub's cache is; a folder of models that somebody else looks after may be meant to be read only."""
    found = node_of(context, node)
    return found is not None and found.paths.hub == path
