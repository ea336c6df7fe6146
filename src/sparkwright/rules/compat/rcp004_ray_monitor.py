"""Ray's memory monitor is switched on.

Detects: vLLM on Ray with RAY_memory_monitor_refresh_ms other than 0, in the recipe or in a node's entry.
Why: on unified memory the model is the node's memory: the monitor takes a load's peak for a leak and kills workers.
Evidence: the variable's value. The launcher sets 0.
Remedy: remove it.
References: https://conselara.dev/tags/vllm/ (`RAY_memory_monitor_refresh_ms=0`); field guide B5, C2
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import served_on_gb10, variables
from sparkwright.rules.rule import Context

CODE = "RCP004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Ray's memory monitor may kill the workers"
_VARIABLE = "RAY_memory_monitor_refresh_ms"


def check(context: Context) -> Iterator[Finding]:
    value = variables(context).get(_VARIABLE, "0")
    if served_on_gb10(context, "vllm-ray") and value != "0":
        yield Finding(
            CODE,
            SEVERITY,
            f"env.{_VARIABLE}",
            "Ray's memory monitor may kill the workers",
            f"{_VARIABLE}={value}",
            "it takes the peak of loading for a leak: weights and system share one memory",
            f"remove {_VARIABLE}: the launcher sets it to 0",
        )
