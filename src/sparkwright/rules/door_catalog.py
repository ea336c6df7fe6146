"""The rules about the gateway. They speak only where it is made ready: no other context has what they look at."""

from sparkwright.rules.preflight import (
    door001_no_caddy,
    door002_old_caddy,
    door003_pair,
    door004_ends_soon,
    door005_modes,
    door006_port_taken,
    door007_keys_unreadable,
    door008_in_the_clear,
)
from sparkwright.rules.rule import Rule

NO_CADDY, PAIR, PORT = door001_no_caddy.CODE, door003_pair.CODE, door006_port_taken.CODE
KEYS, MODES = door007_keys_unreadable.CODE, door005_modes.CODE
GATEWAY: tuple[Rule, ...] = (
    door001_no_caddy,
    door006_port_taken,
    door003_pair,
    door007_keys_unreadable,
    door005_modes,
    door008_in_the_clear,
    door004_ends_soon,
    door002_old_caddy,
)
