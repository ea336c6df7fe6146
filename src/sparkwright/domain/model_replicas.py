"""A model with several replicas as one thing: they are deployments of their own, and clients see only the model."""

from collections.abc import Iterable

from sparkwright.domain.deployment import Deployment
from sparkwright.domain.live import SERVING, DeploymentState
from sparkwright.domain.replica import split_replica_name
from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class ModelReplicas:
    """replicas: by number."""

    name: str
    replicas: tuple[Deployment, ...]

    @property
    def serving(self) -> tuple[Deployment, ...]:
        return tuple(one for one in self.replicas if one.state in SERVING)

    @property
    def state(self) -> DeploymentState:
        """ready if all replicas are, degraded if some serve, else the state of the first."""
        if all(one.state is DeploymentState.READY for one in self.replicas):
            return DeploymentState.READY
        return DeploymentState.DEGRADED if self.serving else self.replicas[0].state

    @property
    def endpoint(self) -> str:
        return next((one.endpoint for one in self.replicas if one.endpoint), "")

    @property
    def simulated(self) -> bool:
        return any(one.simulated for one in self.replicas)


def models_of(found: Iterable[Deployment]) -> tuple[ModelReplicas, ...]:
    """The models with replicas, by name."""
    groups: dict[str, list[Deployment]] = {}
    for one in found:
        if one.replica_of:
            groups.setdefault(one.replica_of, []).append(one)
    return tuple(
        ModelReplicas(name, tuple(sorted(members, key=lambda one: split_replica_name(one.name)[1])))
        for name, members in sorted(groups.items())
    )
