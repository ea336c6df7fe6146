"""The server listens on 127.0.0.1 only.

Detects: connections that are reset or refused from outside while the server says that it listens on 127.0.0.1.
Why: llama.cpp, Ollama and others listen on loopback unless told otherwise; inside a container the published port then
  has nothing behind it and the connection is reset.
Evidence: the listening line, or `Recv failure: Connection reset by peer` on a published port.
Remedy: --host 0.0.0.0, behind a firewall and with an API key.
References: https://github.com/ggml-org/llama.cpp/issues/2992
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the server listens on loopback only"
CAUSE = "server-bound-to-loopback"
_LISTENS = (
    r"(?:listening|running|bound|binds?|listens|serving|started"
    r"|server)\b.{0,40}(?:http://)?(?:127\.0\.0\.1|localhost)(?::\d+)?\b"
)
SIGNS = (
    line(r"curl: \(56\) Recv failure: Connection reset by peer", LIKELY),
    line(r"curl: \(52\) Empty reply from server", POSSIBLE),
    near(
        _LISTENS,
        r"refused|connection reset|unreachable|cannot (?:connect|reach|access)|[Cc]an't (?:connect|reach|access)"
        r"|not (?:accessible|reachable)"
        r"|other machines?|outside|remotely|published port",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"(?:serve at|serving on|listen\w* (?:at|to|on)|binds? to|bound to|restrict\w* to"
        r"|limited to) (?:localhost|127\.0\.0\.1|loopback)"
        r"|(?:only|just).{0,30}(?:localhost|127\.0\.0\.1|loopback)|(?:localhost|127\.0\.0\.1|loopback).{0,30}\bonly\b",
        r"container|docker|published|port forward|ECONNREFUSED|other machine|from outside|--host|0\.0\.0\.0"
        r"|another (?:host|machine|pc)|the LAN",
        sure=LIKELY,
        within=2,
        unless=r"Gloo|NCCL",
    ),
    near(r"docker run.{0,200}-p \d+:\d+", r"connection reset by peer|empty reply from server", sure=LIKELY, within=30),
    line(r"^(?:tcp\s+)?LISTEN\s.{0,20}\s127\.0\.0\.1:(?:8000|8080|30000|8001|11434|8355|8888)\s", 0.65),
    line(
        r"(?:listens?|listening|bound|binds?) (?:only )?(?:on|to) (?:127\.0\.0\.1|localhost"
        r"|loopback).{0,60}(?:refused|other|remote|unreachable|LAN|only)",
        LIKELY,
    ),
    near(
        r"--host[= ]0\.0\.0\.0",
        r"(?:not|n't|in)[- ]?access[ai]ble|(?:outside|out) of (?:a |the )?(?:docker|container)|not reachable"
        r"|by default .{0,30}localhost",
        sure=0.7,
        within=2,
    ),
    near(
        r"outside (?:of )?(?:the |a )?(?:docker|container)",
        r"curl: \((?:7|52|56)\)|connection refused|couldn't connect|failed to connect",
        sure=POSSIBLE,
        within=20,
    ),
)
FIX = (
    "add --host 0.0.0.0 to the server (and an API key), or use --network host",
    "ss -ltnp 'sport = :{port}'   # on the node: 127.0.0.1 is loopback only",
)
EXPLAINS = ()
