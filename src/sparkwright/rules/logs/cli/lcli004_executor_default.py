"""The default executor for several nodes is another one now.

Detects: A worker on another host that cannot rebuild a semaphore which lives in the first host's /dev/shm.
Why: newer images start several nodes with the multiprocessing executor where Ray was the default; objects of one
  host's shared memory were then sent to the other.
Evidence: SemLock's rebuild that fails with `No such file`, and WorkerProc that fails after it.
Remedy: Name the executor, and pin the image by digest.
References: https://github.com/vllm-project/vllm (--distributed-executor-backend)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCLI004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the default executor for several nodes is another one now"
CAUSE = "executor-default-changed-multinode"
SIGNS = (
    near(
        r"SemLock\._rebuild|in __setstate__|synchronize\.py",
        r"FileNotFoundError: \[Errno 2\]",
        r"WorkerProc initialization failed|resource_tracker|RayWorker",
        sure=CERTAIN,
        within=12,
    ),
    line(r"_multiprocessing\.SemLock\._rebuild", LIKELY),
    line(r"resource_tracker: '/mp-\w+': \[Errno 2\]", POSSIBLE),
    line(r"nnodes.{0,80}(?:can only|only) (?:be )?(?:used|set|supported).{0,80}(?:\bmp\b|ray)", LIKELY),
    near(
        r"multi-?node|second node|remote (?:node|worker)|across nodes",
        r"(?:mp|multiproc|multiprocessing|ray) executor|distributed-executor-backend|RayExecutorV2",
        r"default(?:s|ed)? (?:is |was |now |changed|to )|now default|no longer default",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"\bmp is (?:now )?the default|default (?:distributed )?executor\b.{0,60}(?:changed|is now|mp\b)"
        r"|Ray is no longer (?:started|the default)|no longer (?:default\w* to|uses) [Rr]ay",
        LIKELY,
    ),
)
FIX = (
    (
        "add --distributed-executor-backend ray (or mp with --nnodes and --node-rank) to the recipe: name "
        "it, never rely on the default"
    ),
    "docker images --digests | grep <image>   # pin the digest that worked",
)
EXPLAINS = ()
