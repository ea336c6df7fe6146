"""UCX_NET_DEVICES names a device that UCX cannot use here.

Detects: UCX that calls a named RDMA port not available, or that cannot make an address handle on the port it took.
Why: the device name belongs to another machine, the container has no /dev/infiniband, or the port has only a
  link-local GID. A network interface (not a port `name:1`) that UCX calls not available is harmless on a Spark.
Evidence: UCX's line with the device.
Remedy: UCX_NET_DEVICES with a device of the list that UCX prints.
References: field guide C4 (5), B5; https://github.com/NVIDIA/TensorRT-LLM/issues/2594
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LNIC007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "UCX is told to use a network device that it cannot use"
CAUSE = "ucx-net-devices-wrong"
SIGNS = (
    line(r"network devices? .{0,60}(?:mlx|roce|bnxt|ib)\w+:\d.{0,300}(?:is|are) not available", 0.85),
    line(r"UCX +ERROR.{0,20}network devices?.{0,60}not available", LIKELY),
    line(r"(?:ibv_create_ah|ibv_create_ah_ex).{0,240}failed: (?:No such device|Invalid argument)", LIKELY),
    line(r"ibv_create_ah.{0,240}failed", POSSIBLE),
    line(r"failed to modify UD QP to INIT on .{0,40}Operation not permitted", LIKELY),
    line(r"ucp_ep_create\(proc=\d+\) failed: Address not valid", LIKELY),
    line(
        r"UCX_NET_DEVICES.{0,100}(?:does not exist|wrong|not exist|no such|invalid|mismatch|not available|missing)",
        LIKELY,
        unless=r"UCX +WARN",
    ),
    line(r"(?:wrong|incorrect|bad|stale) UCX_NET_DEVICES", LIKELY),
    line(r"no usable transports/devices \(asked all on network", LIKELY),
    line(r"btl_tcp_endpoint.{0,120}connect\(\) to .{0,60}failed", POSSIBLE),
    near(
        r"btl_tcp_if_include|oob_tcp_if_include",
        r"\bhangs?\b|wander|docker0|tailscale|wrong interface|stuck",
        sure=LIKELY,
        within=3,
    ),
    line(r"specified interface name: .{0,40}|invalid value was given for (?:btl|oob)_tcp_if_include", POSSIBLE),
    line(r"no usable transports/devices \(asked .{0,60} on network:", 0.85),
    line(
        r"UCX_NET_DEVICES.{0,60}(?:not available|unknown|wrong|does not exist|invalid|no such)"
        r"",
        LIKELY,
    ),
)
FIX = (
    "on each node: ucx_info -d | grep -A1 Transport   # the devices that UCX sees",
    "on each node: export UCX_NET_DEVICES={iface}   # or an RDMA port of `rdma link`: rocep1s0f0:1",
    "docker run ... --device /dev/infiniband --network host",
)
EXPLAINS = ()
