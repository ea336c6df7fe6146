"""CPU and GPU have used up the unified memory; the host stops answering.

Detects: the driver's failed allocations, a host that freezes or resets under memory pressure, the surviving rank
  that loses its peer, and the readings of free or meminfo shortly before.
Why: weights, KV cache, buffers, page cache and host share one pool. When it is empty the kernel reclaims for ever:
  no OOM kill, no panic, SSH hangs, the watchdog resets the host or nobody does.
Evidence: `NV_ERR_NO_MEMORY` of the driver beside a freeze. Alone that line also comes on starts that go well (seen
  on 580.95.05 and 595.91), so alone it proves nothing.
Remedy: power-cycle the node; then a smaller share, a reserve for the kernel, no leak.
References: gb10.md E5, E6, A4, F1; seed 004; https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1358
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import FULL
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LUMA001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "unified memory is exhausted: the host freezes"
CAUSE = "uma-exhaustion-host-freeze"
SIGNS = (
    line(r"NVRM: .{0,60}(?:Out of memory|NV_ERR_NO_MEMORY)", POSSIBLE),
    line(r"NVRM: _iovaspaceCreateMappingDataFromMemDesc: failed to allocate", POSSIBLE),
    near(
        r"NVRM: .{0,60}(?:Out of memory|NV_ERR_NO_MEMORY)",
        r"blocked for more than|soft lockup|hung_task|rcu: INFO|page allocation (?:failure|stalls)",
        sure=LIKELY,
        within=400,
    ),
    near(
        r"NV_ERR_NO_MEMORY|_memdescAllocInternal",
        r"freez|froze|wedge|hard[- ]?(?:lock|reset)|power.?cycle|unresponsive|stops? answering|reset",
        sure=LIKELY,
        within=8,
    ),
    near(
        r"\bUMA |-UMA\b| UMA\b|\bunified[- ]memory\b|\bGB10\b|\bSparks?\b",
        r"freezes?\b|freezing|froze\b|frozen|hard[- ]?(?:freeze|lock|reset|hang)|wedges?\b|wedged|unresponsive"
        r"|unreachable|power.?cycle|stops? (?:answering|responding)",
        r" OOM\b|-OOM\b|out of memory|exhaust|memory pressure|\bswap(?!:)|over-?commit|Gi?B used|" + FULL,
        sure=LIKELY,
    ),
    line(
        r"(?:UMA[ -]|unified.memory|host memory).{0,20}(?:OOM|exhaust\w*)"
        r".{0,60}(?:freez|froze|lock|wedge|hang|reset|power)",
        LIKELY,
    ),
    line(r"freez\w.{0,60}\b(?:unified.memory|UMA)\b|\b(?:unified.memory|UMA)\b.{0,60}freez", LIKELY),
    line(
        r"(?:exhaust\w*|collaps\w*) (?:the )?\b(?:unified|host)[- ]memory|\b(?:unified"
        r"|host)[- ]memory.{0,40}(?:exhaust|collaps)",
        POSSIBLE,
    ),
    line(r"HeartbeatMonitor.{0,40}TCPStore server has shut", POSSIBLE),
    line(r"TCPStore server has shut\b", HINT),
    line(r"RPC call to (?:sample_tokens|execute_model) timed out", POSSIBLE),
    near(
        r"RPC call to (?:sample_tokens|execute_model) timed out",
        r"unified memory|available memory.{0,30}(?:drops|dropped|fell)|MemAvailable",
        sure=LIKELY,
        within=10,
    ),
    line(r"^Mem:\s+1(?:19|2[0-7])Gi\s+1[12]\d(?:\.\d)?Gi\s+\S+\s+\S+\s+\S+\s+(?:[0-2](?:\.\d)?Gi|\d+Mi)\s*$", POSSIBLE),
    line(r"^Mem:\s+1(?:19|2[0-7])\s+1[12]\d\s+\d\s+\d+\s+\d+\s+[0-2]\s*$", POSSIBLE),
    line(r"^Mem:\s+12\d{4}\s+12[0-4]\d{3}\s+\d{1,4}\s+\d+\s+\d+\s+[12]?\d{1,3}\s*$", POSSIBLE),
    line(r"^MemAvailable:\s+(?:[12]?\d{6}|\d{1,5}) kB", POSSIBLE),
    near(
        r"No route to host|Connection to \S+ timed out|Host is down",
        r"HeartbeatMonitor|TCPStore",
        sure=POSSIBLE,
        within=20,
    ),
    line(r"(?:GB10|DGX Spark|UMA|unified memory).{0,60}(?:死机|卡死|冻结|内存耗尽|无响应)", LIKELY),
    line(
        r"(?:\bssh\b|\bTCP\b|port 22\b|sshd).{0,60}(?:\bno|without(?: an?)?|never|before the"
        r"|missing) (?:SSH )?banner|banner exchange.{0,40}timed? ?out|timed out during banner exchange",
        0.6,
    ),
    near(
        r"\b1[12]\d,\d{3} / 12[0-9],\d{3}\b",
        r"Telemetry|Swap MiB|Used ?/ ?total|freez|telemetry gap|last sample",
        sure=LIKELY,
        within=6,
    ),
    line(r"blocked for more than \d+ seconds", POSSIBLE),
    line(r"Under memory pressure, flushing caches", POSSIBLE),
    line(r"earlyoom\[?\d*\]?: mem avail:.{0,30}\( ?[0-4]\.\d+%\)|systemd-oomd.{0,60}(?:killed|memory pressure)", 0.65),
    near(
        r"\b(?:host|node|machine|box|system|both nodes|Sparks?)\b.{0,40}(?:unreachable|unresponsive|freez\w+|froze"
        r"|hangs? completely|locks? up|hard[- ]?lock\w*|goes dead)",
        r"power[- ]?cycle|hard reset|loading (?:the )?(?:weights|model)|weight loading|load(?:ing)? phase"
        r"|only ping|\bssh (?:hangs|dies|stops|times)|over ssh",
        sure=0.65,
        within=1,
        unless=r"network|link down|NIC\b",
    ),
    near(
        r"\b(?:memory|MemAvailable|pool|RAM)\b.{0,60}(?:exhaust\w*|runs? out|ran out|fell to|drops? to"
        r"|dropped to|collaps\w+|near zero|used up)",
        r"\b(?:system|host|machine|box|node|Spark|desktop)\b.{0,40}(?:hangs?\b|freez\w+|froze|locks? up"
        r"|wedge\w*|unresponsive|goes down|hard[- ]reset)|power[- ]cycle|loss of SSH|lost SSH",
        sure=0.7,
        within=2,
    ),
    near(
        r"NV_ERR_NO_MEMORY",
        r"(?:loss of|lost|no more) SSH|unclean reboot|journal (?:ends|stops|just ends)|wedge\w*"
        r"|empty pstore|reboots? itself",
        sure=LIKELY,
        within=6,
    ),
    line(r"soft lockup - CPU#\d+ stuck", POSSIBLE),
    near(
        r"swap (?:\w+ ){0,3}(?:full|used|exhausted)|\bused \d{3} ?Gi?B? of 12\d",
        r"(?:ssh|node|host|machine|box|system|desktop)\b.{0,30}(?:stopped answering|stops answering"
        r"|unreachable|unresponsive|freez\w+|froze|hang\w*|dead)",
        sure=0.7,
        within=2,
    ),
)
FIX = (
    "power-cycle {node} (hold the button, or cut the wall power for 60 s); /health of the other rank lies for minutes",
    "--gpu-memory-utilization 0.80   # 0.75 where the driver's 0x51 line came; at most 109 of 121 GB used",
    "sudo sysctl -w vm.min_free_kbytes=3145728   # after the engine's start-up check, which it would fail",
    "sudo journalctl -k -b -1 | grep -cE 'NV_ERR_NO_MEMORY|blocked for more than'   # on {node}: the boot before",
)
EXPLAINS = ("engine-ready-timeout-too-short",)
