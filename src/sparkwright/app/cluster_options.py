"""The choice of cluster; apart from wiring.py, so that a verb that needs no cluster starts quickly."""

from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The command line's options; '' for an option that is not given."""

    cluster: str = ""
    ssh_config: str = ""
