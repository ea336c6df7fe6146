"""Busy waiting heats the chip.

Detects: CPU cores that spin in vLLM's shared-memory queue.
Why: readers poll for one second after each message before they sleep; under load the next message always comes
  sooner, so three to four cores run at full clock. CPU and GPU of GB10 share power and heat.
Evidence: profiles with sched_yield under shm_broadcast, high CPU load and temperature while the GPU is cool. One
  stack alone is only a hint: waiting readers look the same.
Remedy: a shorter spin; reports differ on temperature, not on speed (up to 10 % more).
References: vLLM issue 19036, pull requests 51950, 52814; field guide E107
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LPRF003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "busy waiting heats the chip"
CAUSE = "shm-spin-wait-cpu-heat-gb10"
SIGNS = (
    near(
        r"sched_yield|busy_loop_s|SpinCondition|acquire_read",
        r"\d{2,3}% CPU|CPU usage| °C|thermal|hot-?spot|P-cores?|spins?\b|spinning|busy-?wait|at idle"
        r"|when idle|pegg",
        sure=LIKELY,
        within=6,
    ),
    line(r"\d\.\d{1,9}% .{0,80}sched_yield", LIKELY),
    line(r"\bbusy_loop_s\b|VLLM_SHM_BROADCAST_BUSY|VLLM_MQ_SPIN_SECONDS", LIKELY),
    near(
        r"shm_broadcast|message[- ]?queue|MessageQueue",
        r"busy[- _]?loop|busy-?wait|spins?\b|spinning",
        r"\bcores\b|CPU (?:usage|load|time)|heat\b|power draw|power budget",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"sched_yield \(",
        r"acquire_read \(|wait \(vllm/distributed",
        sure=HINT,
        within=3,
    ),
    line(
        r"^(?=.*(?:100 ?%|cores?\b|CPU|busy|burn)).*(?:sched_yield|busy.?wait of the message"
        r"|message queue (?:burns|spins))",
        LIKELY,
    ),
    line(r"\d{3} ?% CPU.{0,160}°C|°C.{0,160}\d{3} ?% CPU", POSSIBLE),
    line(r"P-cores?.{0,60}(?:spin|100 ?%|max clock|boost)|(?:spin|pin|burn)\w* .{0,40}P-cores?", LIKELY),
)
FIX = (
    "vLLM with VLLM_SHM_BROADCAST_BUSY_LOOP_S (pull request 52814): set 0.002",
    "older: busy_loop_s = 0.002 in vllm/distributed/device_communicators/shm_broadcast.py on every node",
    "nvidia-smi -q -d TEMPERATURE; sensors   # before and after",
)
EXPLAINS = ()
