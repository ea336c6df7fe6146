"""The fabric loses packets.

Detects: RDMA counters of retries and lost order that rise, and reports of packet loss below a stalled collective.
Why: a bad cable, a switch without flow control, mixed link speeds or MTUs lose packets; RoCE repeats them, slowly, and
  sometimes gives up without a word to NCCL.
Evidence: the counters in /sys/class/infiniband/*/ports/1/hw_counters, before and after.
Remedy: another cable, equal MTU and speed on all links, PFC or global pause on the switch.
References: https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/pull/115
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LLNK017"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "the fabric loses packets"
CAUSE = "fabric-packet-loss"
_COUNTER = (
    r"packet_seq_err|roce_adp_retrans|req_transport_retries_exceeded|local_ack_timeout_err"
    r"|rnr_nak_retry_err|out_of_sequence"
)
SIGNS = (
    line(r"(?:" + _COUNTER + r")\W{1,6}[1-9]\d{2,}", LIKELY),
    line(r"req_transport_retries_exceeded\W{1,6}[1-9]", LIKELY),
    near(_COUNTER, r"packet loss|rising|rose|moved by|grow|increas|retrans", sure=LIKELY, within=3),
    near(r"packet loss|lost packets|retransmi", r"RDMA|rocep|RoCE fabric|fabric|NCCL ", sure=LIKELY, within=2),
)
FIX = (
    "on each node: grep -H . "
    "/sys/class/infiniband/*/ports/1/hw_counters/{{packet_seq_err,out_of_sequence,local_ack_timeout_err}}",
    "ip -br link; ethtool {iface} | grep Speed   # MTU and speed equal on all nodes; then another cable",
)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
