"""The rules over whole logs, in the order of their codes."""

from sparkwright.causes.cause import WholeLogRule
from sparkwright.causes.whole_log import (
    live001_peer_never_came,
    live002_nccl_init_hangs,
    live003_spin,
    live004_capture_hangs,
    live005_link_lost,
    live006_capped_rows,
    live007_swapping,
    live008_worker_silent,
)
from sparkwright.causes.whole_log.ends import WITNESSED

WHOLE_LOG: tuple[WholeLogRule, ...] = (
    live001_peer_never_came,
    live002_nccl_init_hangs,
    live003_spin,
    live004_capture_hangs,
    live005_link_lost,
    live006_capped_rows,
    live007_swapping,
    live008_worker_silent,
    *WITNESSED,
)
