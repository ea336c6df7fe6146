"""The forms in which a plan can be written out, by the name that `plan --emit` takes."""

from collections.abc import Callable, Mapping, Sequence

from sparkwright.domain.values import replace
from sparkwright.emit import FORM_NAMES
from sparkwright.emit.compose import compose
from sparkwright.emit.k8s import emit_k8s, k8s_groups
from sparkwright.emit.shell import emit_shell
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.emit.systemd import systemd

FORMS: Mapping[str, Callable[[DeploymentSource], tuple[EmittedFile, ...]]] = dict(
    zip(FORM_NAMES, (compose, emit_shell, emit_k8s, systemd), strict=True)
)


def emit_groups(form: str, model: str, sources: Sequence[DeploymentSource]) -> tuple[EmittedFile, ...]:
    """The files of several groups of nodes that each serve the whole model. Raises UsageError as the form does.

    Kubernetes gets one file with a Service. Every other form gets a folder for each group, and no router.
    """
    if form == "k8s":
        return k8s_groups(model, sources)
    files = [replace(file, path=f"{one.name}/{file.path}") for one in sources for file in FORMS[form](one)]
    return (EmittedFile("README.md", _overview(form, model, sources)), *files)


def _overview(form: str, model: str, sources: Sequence[DeploymentSource]) -> str:
    rows = [
        f"| `{one.name}` | {_names(one)} | http://{one.plan.bind}:{one.plan.port} on {one.plan.head} |"
        for one in sources
    ]
    steps = "in the scripts" if form == "shell" else "in its README.md"
    closed = any(one.plan.bind.startswith("127.") for one in sources)
    lines = [
        f"# {len(sources)} groups of {model}",
        "",
        "Each group serves the whole model. Nothing here routes: each has an address of its own.",
        "",
        "| folder | nodes | address of the engine |",
        "| -- | -- | -- |",
        *rows,
        "",
        f"1. Start each group as described {steps}. Groups do not depend on each other.",
        "2. Put a router in front that sends a conversation to the group that has it cached: sglang-router or vLLM's",
        "   router (`--policy cache_aware`), with the addresses above. `sparkwright up --replicas` has one of its own.",
        *(
            ["3. The engines listen on 127.0.0.1, so only a router on the same node reaches them. For all others set",
             "   `serving.expose: fabric` or `all` and `serving.api_key_env` in the recipe, and write the files again."]
            if closed else []
        ),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _names(source: DeploymentSource) -> str:
    return ", ".join(dict.fromkeys(spec.node for spec in source.specs))
