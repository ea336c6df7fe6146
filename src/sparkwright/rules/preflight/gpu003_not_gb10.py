"""A node whose GPU is another than a GB10.

Detects: nvidia-smi lists GPUs, and none is a GB10.
Why: memory figures, known faults and ready recipes are those of GB10 (sm_121, one pool of memory for CPU and GPU).
  Other GPUs are used as they are, with fewer promises.
Evidence: the GPU's name, and the machine's architecture.
Remedy: nothing, or recipes of your own for that GPU.
References: https://docs.nvidia.com/dgx/dgx-spark/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import is_gb10, known, nodes
from sparkwright.rules.rule import Context

CODE = "GPU003"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the GPU is not a GB10"


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        gpus, identity = known(facts.gpus), known(facts.identity)
        if gpus and not is_gb10(facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the GPU is no GB10: {gpus[0].name}",
                f"nvidia-smi: {gpus[0].name}, compute capability {known(gpus[0].compute_capability) or 'not told'}"
                + (f"; uname -m: {identity.arch}" if identity else ""),
                "another machine than the ones that sparkwright knows best",
                "check recipes with `sparkwright plan` before you rely on them",
            )
