"""RDMA counters that stand still while work comes out: ranks that should talk over RDMA talk over something else."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.supervision.detect.life import Life
from sparkwright.supervision.detect.setting import Setting
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery


@dataclass
class Fabric:
    """since: when tokens began to come without any traffic; 0 when that is not so."""

    setting: Setting
    since: float = 0.0

    def look(self, life: Life, counted: Sequence[str], at: float) -> Fault | None:
        """counted: nodes whose counters can be read. `frozen` has these counters as one of its own signs."""
        if not self.setting.rdma or self.setting.world < 2 or not counted:
            return None
        stale = self.setting.patience.stale
        silent = [node for node in counted if at - life.carried(node) > stale]
        works = at - life.proved < stale / 2
        if not works or not silent:
            self.since = 0.0
            return None
        self.since = self.since or at
        if at - self.since < stale:
            return None
        what = f"tokens come, but nothing goes over the RDMA ports of {', '.join(silent)}: the ranks use slow sockets"
        return Fault(at, "rdma-still", what, Recovery.NONE, ("port_xmit_data and port_rcv_data do not move",))
