"""Heat makes the GPU slow down.

Detects: active thermal slowdown reasons, and the kernel's critical temperature.
Why: cooling does not carry the load away: blocked vents, dried paste, a warm rack, a fan that stops.
Evidence: the throttle reason; zones near 95 degrees.
Remedy: air, cooling, a clock cap.
References: gb10.md A7, E21
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LDRV020"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU slows down because of heat"
CAUSE = "gpu-thermal-slowdown"
SIGNS = (
    line(r"(?:HW|SW) Thermal Slowdown\s+: Active", LIKELY),
    line(r"critical temperature reached|(?:temperature|thermal) above threshold, cpu clock throttled", LIKELY),
    near(
        r"thermal thrott\w+|throttl\w.{0,20}(?:heat|temperature|thermal)",
        r" GPU\b|GB10|\bSparks?\b|SM clock",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "cat /sys/class/thermal/thermal_zone*/temp; nvidia-smi -q -d TEMPERATURE,PERFORMANCE   # on {node}, under load",
    "sudo nvidia-smi -lgc 200,2000   # lost at reboot; the same on all nodes",
)
EXPLAINS: tuple[str, ...] = ()
