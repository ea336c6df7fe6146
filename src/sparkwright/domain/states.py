"""The states of a deployment."""

from enum import StrEnum


class DeploymentState(StrEnum):
    PLANNED = "planned"
    STAGING = "staging"
    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    DEGRADED = "degraded"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"
    BACKING_OFF = "backing_off"
    NEEDS_REBOOT = "needs_reboot"
    NEEDS_POWER_CYCLE = "needs_power_cycle"
