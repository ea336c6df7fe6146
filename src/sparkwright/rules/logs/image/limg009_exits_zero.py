"""The container ends with code 0 after a failure, and is not started again.

Detects: Exited (0) beside an engine that died, and reports of a restart policy that does not fire.
Why: when the engine core dies the API server shuts down in order, and torch.distributed workers leave with 0 after
  the head is gone: `on-failure` sees no failure.
Evidence: Docker's status together with the engine's end.
Remedy: one recovery path that watches tokens, not exit codes.
References: gb10.md E112, F4; captures m1-head.log (the head exits with 0)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LIMG009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "container exits 0 after a failure"
CAUSE = "container-exits-zero-not-restarted"
SIGNS = (
    near(
        r"exited \(0\)|exit(ed|s)?( with)?( (status|exit))?( code)? [`*]*0\b|ExitCode\W{1,4}0\b",
        r"on-failure.{0,60}(never|not |fire|restart)|restart[- ]polic.{0,60}(not |never)"
        r"|(not|never|isn't) restart|never (fires|restarts)|OOMKilled=false|rather than failed|EngineDead"
        r"|engine (core )?(died|dead)",
        sure=LIKELY,
        within=6,
    ),
)
FIX = (
    "docker inspect -f '{{{{.State.ExitCode}}}} {{{{.HostConfig.RestartPolicy.Name}}}}' {container}",
    "look above the shutdown for the first error of the engine, on all ranks",
    "let sparkwright restart all ranks; do not use restart: always on single ranks",
)
EXPLAINS = ()
