"""The page cache fills the unified memory while weights load.

Detects: loads that slow down or stall near the end with a large cache, a start that counts cache as used, and
  CUDA's out-of-memory in its first query.
Why: reading a checkpoint fills the page cache from the pool that the weights need. CUDA's figure of free memory
  does not count cache that could be given back, and reclaim stalls the loader.
Evidence: buff/cache of tens of GB beside a stalled load; a launch that works after the caches are dropped.
Remedy: drop the caches before each start, and during the load where it stalls.
References: gb10.md E30, E70, A4; seed 001; https://github.com/vllm-project/vllm/issues/48140
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import HALF, UNIFIED, refused
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LUMA003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the page cache holds the unified memory"
CAUSE = "page-cache-eats-unified-memory"
SIGNS = (
    near(
        r"page[- ]cache|pagecache|buff/cache|drop_caches",
        r"stall|freez|froze|\bhangs?\b|slow(?:er|s|ly)?\b| OOMs?\b|unstick|decays|\bdied\b|\bdies\b|swap(?!:)|thrash"
        r"|contention|reclaim|out of memory|\bkilled\b|compet(?:e|ing)|counts? as|counted|decayed|fails? (?:at|on"
        r"|like)",
        r"shards?\b|weights?\b|checkpoint|GB10|\bSparks?\b|unified|\bfree\b|rsync|download",
        sure=LIKELY,
        within=5,
    ),
    line(refused(HALF, UNIFIED), POSSIBLE),
    line(refused(r"[4-9]\d(?:\.\d+)?", r"14[23](?:\.\d+)?"), LIKELY),
    near(
        r"page[- ]?cache|reclaimable",
        r"MemFree|MemAvailable|MemGetInfo|mem_get_info|start-?up check|counts? as used",
        sure=LIKELY,
    ),
    near(
        r"cudaMemGetInfo|mem_get_info|MemorySnapshot|init_snapshot|init_device",
        r"CUDA error: out of memory",
        sure=POSSIBLE,
        within=30,
    ),
    near(r"[Aa]vailable after (?:model )?load|[Aa]vailable after reboot", r"\bswap", sure=LIKELY, within=8),
    near(
        r"\bswap\b.{0,40}(?:in use|\bGB\b)|hitting swap|swapp(?:ed|ing)",
        r"slower|\bslow\b|timed out|stall",
        sure=LIKELY,
    ),
    near(
        r"MemFree.{0,30}(?:~ ?0|near zero|\b[0-2](?:\.\d+)? ?Gi?B)",
        r"MemAvailable|reclaimable|page cache|buff/cache",
        sure=LIKELY,
        within=3,
    ),
    line(r"(?:page cache|buff/cache|drop_caches|Cached).{0,40}(?:缓存|占用|占满|加载)", LIKELY),
    near(
        r"\bfree[= ]{1,2}[\d.]+ ?G.{0,20}\bcached?[= ]{1,2}[\d.]+ ?G",
        r"does not fit|memory limits?|hard_limit|cannot admit|can admit|not enough|too little|refused",
        sure=LIKELY,
        within=6,
    ),
    line(r"exceeds device memory budget", POSSIBLE),
    near(
        r"^\W{0,3}Mem:\s+1(?:19|2[0-7])(?:\.\d)?Gi?\s+[\d.]+Gi?\s+(?:[0-5](?:\.\d)?Gi?"
        r"|\d+Mi?)\s+\S+\s+(?:[4-9]\d|1[01]\d)(?:\.\d)?Gi?\s",
        r"out of memory|OutOfMemory|Free memory on device|refus|stall|swap(?:s|ped|ping)\b|not enough|slow",
        sure=LIKELY,
        within=8,
    ),
    line(
        r"(?:drop_caches|vm\.drop_caches|sync; ?echo 3).{0,80}(?:fix\w*|help\w*|works?|free[sd]?"
        r"|before (?:the )?(?:start|launch|load)|solves)",
        LIKELY,
    ),
    near(
        r"page[- ]cache|buff/cache|file cache",
        r"(?:sees|reports|shows|has|only|just) .{0,16}\d+ ?G\w* (?:is |are )?free|fills? (?:the |all "
        r"|up )?(?:RAM|memory)|not (?:counted as )?free|fills up",
        sure=0.7,
        within=1,
    ),
    line(r"free.{0,20}\bMemFree.{0,30}\bMemAvailable.{0,30}\bCached", LIKELY),
    near(
        r"page[- ]cache",
        r"\binherit\w*|\bdropped\b|(?:before|at) launch",
        r"\belapsed\b|seconds|tok/s|slower|\d min\b",
        sure=LIKELY,
        within=6,
    ),
)
FIX = (
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on every node, right before the start",
    "while loading: repeat it every 60 s, or read past the cache (--load-format instanttensor; llama.cpp: --no-mmap)",
    "free -g   # buff/cache of tens of GB with little `available`: stop the copy or download that fills it",
)
EXPLAINS: tuple[str, ...] = ()
