"""An engine core survived its server and still holds the memory.

Detects: a start that finds next to nothing free on unified memory, or a VLLM::EngineCore process without a server.
Why: only the API server was killed (SIGKILL, a supervisor's stop). Its engine core and workers run on, reparented,
  and keep the weights; the port is free, so everything looks stopped.
Evidence: less than 25 of 120 GiB free at the start, or the process in a listing with nothing else of the server.
Remedy: kill the left processes of the engine by their ids; stop containers, not processes.
References: https://github.com/vllm-project/vllm/issues/55510; https://github.com/vllm-project/vllm/issues/34643
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import LITTLE, UNIFIED, refused
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LHEL002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "an engine core without its server still holds the memory"
CAUSE = "orphan-enginecore-holds-memory"
SIGNS = (
    line(refused(LITTLE, UNIFIED), LIKELY),
    near(
        r"VLLM::(?:EngineC|Worker)|sglang::scheduler|EngineCore (?:process|child|subprocess)",
        r"orphan|reparent|surviv(?:e|ed|es|ing)\b|left behind|still (?:alive|running|holds|owns|resident)|zombie",
        sure=LIKELY,
        within=3,
    ),
    line(r"(?<!\d)(?P<pid>\d{1,10})\s{1,20}1\s.{0,60}VLLM::EngineCor", LIKELY),
    line(
        r"Core\b.{0,60}(?:zombie|orphan|surviv|left running|leftover|kept running)|(?:zombie|orphaned"
        r"|surviving) .{0,12}Core\b",
        LIKELY,
    ),
    line(r"VLLM::EngineC.{0,40}(?:残留|僵尸|孤儿|没有退出)", LIKELY),
    near(
        r"port (?:frees|is free|is released)|looks stopped|\"stopped\"|supervisor|SIGTERM|SIGKILL|pkill",
        r"\b(?:next|new|restarted|second) (?:engine|server|start|boot|launch)\b.{0,60}(?:OOM|out of memory"
        r"|KV[- ]cache|not enough)",
        sure=0.6,
        within=2,
    ),
    line(
        r"VLLM::(?:EngineC\w*|Worker\w*)\s.{0,20}\d{4,6} ?MiB.{0,60}(?:after|still|there|leftover)"
        r"|(?:EngineCore|scheduler) (?:process )?(?:is )?still (?:there|alive|running|holds)",
        LIKELY,
    ),
    near(
        r"\bfuser -v|--showpids|query-compute-apps",
        r"VLLM::(?:EngineC|Worker)|sglang::scheduler",
        sure=POSSIBLE,
        within=8,
    ),
    line(
        r"(?:after|still).{0,60}(?:VLLM::(?:EngineC|Worker)|sglang::sched).{0,40}\d ?G"
        r"|VLLM::EngineC.{0,60}after (?:ctrl|kill|stop|exit|crash)",
        LIKELY,
    ),
)
FIX = (
    "ps -eo pid,ppid,rss,args | grep -E 'VLLM::|sglang::' | grep -v grep   # on {node}: engines without a server",
    "kill {pid}; sleep 10; kill -9 {pid}   # only the ids that the list shows",
    "free -g   # start again when the memory is back; if it is not, the driver keeps it: reboot {node}",
)
EXPLAINS = (
    "other-process-holds-gpu-memory",
    "kv-cache-no-memory-left",
)
