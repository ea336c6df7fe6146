"""What `check --deep` measured, and what it could not measure."""

from dataclasses import dataclass

from sparkwright.domain.unknown import Unknown


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """One rail from `source` to `target`. gbit: average Gb/s; Unknown: ib_write_bw's own line, and why."""

    source: str
    target: str
    device: str
    peer_device: str
    gbit: float | Unknown


@dataclass(frozen=True, slots=True)
class ClockSample:
    """What nvidia-smi says of the GPU at one moment: MHz, W, percent."""

    sm_mhz: float
    power_w: float
    utilization: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """A GPU under load for some seconds. load: what made it: `torch on the node`, an image, `what runs there`."""

    node: str
    load: str
    samples: tuple[ClockSample, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A measurement that was not made: of what (`RDMA bandwidth`, `clocks under load`), where, and why."""

    what: str
    subject: str
    why: str


@dataclass(frozen=True, slots=True)
class Measured:
    bandwidths: tuple[Bandwidth, ...] = ()
    clocks: tuple[Clocks, ...] = ()
    skipped: tuple[Skipped, ...] = ()
