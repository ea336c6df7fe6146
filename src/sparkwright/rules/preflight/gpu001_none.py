"""The recipe needs a GPU and the node shows none.

Detects: a rank takes the GPU, and nvidia-smi on its node is missing, fails, hangs or lists no GPU. Not when it was
  not asked, and not for simulated runs.
Why: the engine would end with `No CUDA GPUs are available` after minutes; on a GB10 a GPU that has gone means a torn
  update or firmware that did not start.
Evidence: nvidia-smi's own first line.
Remedy: see what the driver says; after a torn update run the DGX Dashboard update again.
References: https://github.com/thatcooperguy/NVCheckup (`No devices were found`, also with exit code 0).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NOT_ASKED, NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import simulated, specs_on
from sparkwright.rules.rule import Context

CODE = "GPU001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "a GPU is needed and the node shows none"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values():
        needed = any(spec.gpu for spec in specs_on(context, facts.node)) and not simulated(context)
        if needed and not facts.gpus and facts.gpus != NOT_ASKED:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "no GPU to be seen",
                _said(facts),
                "the machine has no NVIDIA GPU, its driver is not loaded, or the GPU did not start",
                "sudo dmesg | grep -iE 'nvrm|xid' on the node; a recipe for the CPU is tiny-llama-cpp",
            )


def _said(facts: NodeFacts) -> str:
    if isinstance(facts.gpus, Unknown):
        return f"nvidia-smi: {facts.gpus.raw or facts.gpus.why}"
    return "nvidia-smi lists no GPU"
