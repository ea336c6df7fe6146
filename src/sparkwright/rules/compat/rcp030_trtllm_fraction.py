"""TensorRT-LLM's share of the free memory on two nodes: sources contradict each other.

Detects: TensorRT-LLM over several nodes with serving.memory_fraction over 0.4, or none (its own default is 0.9).
Why: two sides. NVIDIA's playbook gives 0.9 of what is free after loading to the KV cache. Other side: an owner of two
nodes serves with 0.4 and one sequence, for page cache and bursts need the same memory.
Evidence: the fraction.
Remedy: begin with 0.4, and raise it while `sparkwright facts` shows memory to spare under load.
References: https://github.com/NVIDIA/dgx-spark-playbooks/tree/main/nvidia/trt-llm;
https://github.com/chenboju/dgx-spark-serving/tree/main/trtllm
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP030"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "TensorRT-LLM's share of the free memory: sources contradict each other"
_SERVED, _DEFAULT = 0.4, 0.9


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, "trtllm")
    if recipe is None or recipe.nodes == 1:
        return
    given = recipe.serving.memory_fraction
    if (given or _DEFAULT) > _SERVED:
        yield Finding(
            CODE,
            SEVERITY,
            "serving.memory_fraction",
            "TensorRT-LLM's share of the free memory: sources contradict each other",
            f"memory_fraction: {given:g}" if given else "memory_fraction is not given; the engine's own is 0.9",
            "NVIDIA's playbook gives 0.9 to the KV cache; an owner of two nodes serves with 0.4 and one sequence",
            "serving.memory_fraction: 0.4 to begin with",
        )
