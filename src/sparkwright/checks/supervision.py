"""The findings about what prevents supervision. Codes SUP001 to SUP013 are never reused."""

from sparkwright.domain.check import Check, explained
from sparkwright.domain.finding import WARN

CHECKS = explained(
    __file__,
    Check("SUP001", WARN, "no supervisor: no Python 3.11 on the head"),
    Check("SUP002", WARN, "no automatic start of the supervisor after a reboot"),
    Check("SUP003", WARN, "no supervisor: worker not reachable by ssh"),
    Check("SUP004", WARN, "no supervisor: it does not run"),
    Check("SUP005", WARN, "no supervisor: installation failed"),
    Check("SUP006", WARN, "no gateway: installation failed"),
    Check("SUP007", WARN, "no supervisor: nodes are locked by another command"),
    Check("SUP008", WARN, "model output is garbage"),
    Check("SUP009", WARN, "parser does not fit the model"),
    Check("SUP010", WARN, "gateway's CA has changed: clients need the new ca.crt"),
    Check("SUP011", WARN, "answers repeat themselves"),
    Check("SUP012", WARN, "no standby for the head's gateway"),
    Check("SUP013", WARN, "standby without a third node"),
)
(
    NO_PYTHON,
    NO_START_AT_BOOT,
    NO_SSH,
    NOT_RUNNING,
    NOT_INSTALLED,
    NO_GATEWAY,
    LOCKED,
    GARBAGE,
    PARSERS,
    NEW_CA,
    REPEATS,
    NO_STANDBY,
    TWO_NODES,
) = CHECKS
