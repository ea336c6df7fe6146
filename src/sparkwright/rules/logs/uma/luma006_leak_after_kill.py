"""The memory of a killed engine is still with the driver.

Detects: a start that finds a third of the memory missing with nothing running, ranks with very different free
  memory, CUDA's out-of-memory in its first call.
Why: pages that an ended CUDA process frees stay in the driver's pool; a crashed or hard-stopped container leaves
  about 33 GB. Dropping caches does not return it.
Evidence: SGLang's two figures far apart; free memory that shrinks with each restart.
Remedy: stop engines cleanly; wait, then reboot the node that lacks memory.
References: seed 001; gb10.md A1, E14, E15
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LUMA006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "memory of a killed engine stays with the driver"
CAUSE = "gb10-unified-memory-leak-after-kill"
SIGNS = (
    line(
        r"memory capacity is unbalanced.{0,120}pre_model_load_memory=(?P<free>[1-6]?\d(?:\.\d+)?), local_gpu_memor"
        r"y=(?P<here>(?:9[5-9]|1[012]\d)(?:\.\d+)?)",
        LIKELY,
    ),
    line(r"pre_model_load_memory=(?P<free>[1-6]?\d(?:\.\d+)?), local_gpu_memory=(?:9[5-9]|1[012]\d)(?:\.\d+)?", LIKELY),
    line(r"torch\.AcceleratorError: CUDA error: out of memory", POSSIBLE),
    near(
        r"cudaMemGetInfo|mem_get_info|MemorySnapshot|init_snapshot",
        r"CUDA error: out of memory",
        sure=LIKELY,
        within=30,
    ),
    near(
        r"\bkill(?:ed)?\b|crashed|stopped|docker (?:rm|stop)|SIGKILL|hard.stop|previous|restarts?\b",
        r"(?:not|n't) (?:been |yet )?(?:released|reclaimed|returned|freed)|never (?:released|returned|freed"
        r"|given back)|(?:still|stays|remains|left) (?:allocated|pinned|held|occupied)|(?:leak|pinned"
        r"|retain).{0,60}(?:driver|unified)",
        r"unified|GB10|\bSparks?\b|reboot",
        sure=LIKELY,
    ),
    line(
        r"(?:each|every) (?:restart|stop|kill).{0,60}(?:KV|memory|GB).{0,30}(?:shrink|less|lost|lower)|KV (?:pool"
        r"|cache) shrinks",
        LIKELY,
    ),
    near(
        r"\bno CUDA process|\bno GPU process|no compute process|nothing (?:is )?running|no process (?:is )?alive",
        r"(?:used by nobody|missing|unaccounted).{0,40}\b\d+ ?Gi?B|\b\d+ ?Gi?B.{0,40}(?:used by nobody|missing"
        r"|unaccounted)|MemAvailable (?:is )?(?:only )?\d\d\b",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"(?:GPU|driver|GB10|Spark|docker).{0,40}(?:杀掉|停止|重启).{0,40}内存.{0,20}(?:未释放|没有释放|不释放)", LIKELY
    ),
    line(
        r"(?:after|once) .{0,40}(?:kill|stop|SIGKILL|crash|docker rm).{0,80}(?:still|remain\w*|stays?"
        r"|keeps?|never) .{0,40}(?:used|held|allocated|freed|released|comes back).{0,80}(?:no process"
        r"|only a reboot|until (?:a )?reboot|nothing holds)",
        LIKELY,
    ),
)
FIX = (
    (
        "free -g; nvidia-smi --query-compute-apps=pid,used_gpu_memory --format=csv   # on {node}: little free, and no "
        "process"
    ),
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; sleep 60; free -g   # if it stays low the driver holds it",
    "sudo systemctl reboot --no-block   # on {node}; check `uptime -s` afterwards",
    "stop with `sparkwright down {deployment}` (SIGTERM and a wait), not with docker kill",
)
EXPLAINS = (
    "free-memory-unbalanced-between-ranks",
    "other-process-holds-gpu-memory",
)
