"""Another process has the port.

Detects: `Address already in use` in all its wordings, of servers, Docker, torch and Ray.
Why: an earlier server, one of its workers, or another service listens there.
Evidence: errno 98; the launcher of vLLM also names the process.
Remedy: stop that process, or take another port.
References: field guide E93; https://github.com/vllm-project/vllm/issues/8204
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LLNK002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the port is already in use"
CAUSE = "port-already-in-use"
_RETRY = r"trying (?:port|another)|retrying with|try the next|using port|Trying port"
SIGNS = (
    line(r"address already in use", CERTAIN, unless=_RETRY),
    line(r"\bEADDRINUSE\b", CERTAIN, unless=_RETRY),
    line(r"errno:? 98\b|\[errno 48\]|code: -98\b", CERTAIN, unless=_RETRY),
    line(r"port is already allocated", CERTAIN),
    line(r"couldn't bind (?:to server|HTTP server) socket", LIKELY),
    line(
        r"port \D{0,12}(?P<port>\d{2,5})\b.{0,30}(?:is |was )?(?:already (?:in use|taken|occupied|being used)"
        r"|not available)",
        LIKELY,
        unless=_RETRY,
    ),
    line(r"port (?P<port>\d{2,5}) is used by process", LIKELY),
    line(r"port\w* at (?P<port>\d{2,5}) is not available", LIKELY),
    line(r"failed to create server socket", POSSIBLE),
    line(
        r"(?:failed|unable|cannot|could not) to bind (?:to )?(?:the )?(?:port|address|server socket|socket)",
        POSSIBLE,
        unless=r"requested address",
    ),
    line(r"端口.{0,12}(?:被占用|已占用|占用|冲突)", LIKELY),
    line(
        r"\bport \d{2,5} is (?:already )?(?:in use|taken|occupied|allocated|not available)",
        LIKELY,
        unless=r"trying|INFO|using port",
    ),
)
FIX = (
    "ss -ltnp 'sport = :{port}'   # which process has it",
    "docker ps --filter publish={port}; stop the old deployment, or choose another port",
)
EXPLAINS = ("engine-ready-timeout-too-short", "peer-rank-died", "rank-restart-race-tcpstore")
