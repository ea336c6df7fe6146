"""A GPU at 90 °C or more.

Detects: nvidia-smi tells a GPU temperature of 90 °C or more.
Why: soaks on record stay at 79-86 °C. Above, clocks fall, and GB10 machines have switched themselves off under load
  without a line in any log.
Evidence: the temperature.
Remedy: air, dust, thermal paste; a clock limit helps for the time being.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (79-86 °C in soaks);
  https://github.com/guardkit/dgx-spark
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "GPU006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU is hot"

_HOT = 90


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        degrees = max(
            (t for gpu in known(facts.gpus) or () if (t := known(gpu.temperature_c)) is not None), default=0.0
        )
        if degrees >= _HOT:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the GPU is at {degrees:g} °C",
                f"nvidia-smi: {degrees:g} °C; up to 86 °C is normal under load",
                "little air, dust, or thermal paste that has aged",
                "give it air; for the time being sudo nvidia-smi -lgc 200,2000 costs little speed (lost at reboot)",
            )
