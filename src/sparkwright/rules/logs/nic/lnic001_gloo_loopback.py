"""Gloo announces an address that the other nodes cannot reach.

Detects: Gloo that connects to 127.0.0.1, takes the loopback interface, or whose ranks do not all reach one another.
Why: the host's name resolves to a loopback address or to another network's, so Gloo announces that one and the peers
  are refused. With a wrong interface name it hangs without a line instead.
Evidence: Gloo's own line, or its connect error with a loopback address.
Remedy: name the fabric interface in GLOO_SOCKET_IFNAME on every node.
References: seed 000 (`Missing from every guide we found`); https://github.com/sgl-project/sglang/issues/3226
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LNIC001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Gloo uses the loopback interface or another unreachable one"
CAUSE = "gloo-wrong-interface-loopback"
SIGNS = (
    near(
        r"gloo connectFullMesh failed|gloo/transport/tcp",
        r"127\.0\.[01]\.1\b|\[::1\]",
        sure=CERTAIN,
        within=3,
    ),
    line(r"connectFullMesh failed", LIKELY, unless=r"closed by peer|reset by peer"),
    line(r"connectFullMesh failed", POSSIBLE),
    line(r"unable to resolve hostname to a \(local\) address", LIKELY),
    near(
        r"\bgloo\b|GLOO_SOCKET_IFNAME",
        r"loopback|127\.0\.[01]\.1\b(?!:\d+ - )|\blo interface",
        sure=LIKELY,
        within=1,
        unless=r"INFO|non-default interface",
    ),
    near(r"\bgloo\b", r"回环|环回|错误的网卡|网卡不对", sure=LIKELY, within=2),
    line(
        r"(?:every|each|all|both|other|peer|remote|worker)\b.{0,60}127\.0\.[01]\.1.{0,60}(?:refused|cannot reach"
        r"|fails|hangs|times out)",
        LIKELY,
    ),
    line(
        r"127\.0\.[01]\.1\b.{0,80}\b(?:other|second|remote|worker) (?:node|rank|host).{0,60}(?:refused|fails|hangs)",
        LIKELY,
    ),
    line(r"\bgloo\b.{0,40}(?:binds?|bound|falls? back|uses?|picks?) (?:to )?(?:the )?(?:lo|loopback)\b", LIKELY),
    line(r"\bgloo\b.{0,80}(?:wrong|unreachable|unroutable|another) (?:interface|nic|network|address)", LIKELY),
    line(r"gloo.{0,60}(?:timed out|timeout) (?:connecting|waiting).{0,60}(?:connect|init)", POSSIBLE),
    line(r"\[Gloo\] Rank \d+ is connected to 0 peer ranks\. Expected number of connected peer ranks is : [1-9]", 0.7),
    line(
        r"GLOO_SOCKET_IFNAME (?:was |is |has )?(?:not (?:been )?(?:set|exported)|unset|missing|absent)"
        r"|(?:without|missing|set(?:ting)?|export(?:ing)?) GLOO_SOCKET_IFNAME.{0,40}(?:hang|fail|fix|solve"
        r"|help|loopback|works|127)",
        LIKELY,
    ),
)
FIX = (
    "on every node: export GLOO_SOCKET_IFNAME={iface}   # the interface that has the fabric address",
    "ip -br -4 addr   # which interface that is; getent hosts $(hostname) should not say 127.0.1.1",
)
EXPLAINS = ("engine-ready-timeout-too-short", "peer-rank-died", "rank-restart-race-tcpstore")
