"""The LeaderWorkerSet's own fields as JSON schema, for tests: no package index carries the CRD.

Written from the published API types (kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go): field
names, types, enumerations, and no other fields. What is a pod template there is left to Kubernetes' own schemas.
"""

from typing import Any


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


_ANY = {"type": "object"}
_WHOLE = {"type": "integer", "minimum": 0}
_INT_OR_TEXT = {"type": ["integer", "string"]}
_TEMPLATE = _object(
    ("workerTemplate",),
    leaderTemplate=_ANY,
    workerTemplate=_ANY,
    size={"type": "integer", "minimum": 1},
    restartPolicy={"enum": ["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]},
    subGroupPolicy=_object(
        subGroupPolicyType={"enum": ["LeaderWorker", "LeaderExcluded"]}, subGroupSize={"type": "integer", "minimum": 1}
    ),
    volumeClaimTemplates={"type": "array"},
    persistentVolumeClaimRetentionPolicy=_ANY,
)
_ROLLOUT = _object(
    ("type",),
    type={"enum": ["RollingUpdate"]},
    rollingUpdateConfiguration=_object(partition=_WHOLE, maxUnavailable=_INT_OR_TEXT, maxSurge=_INT_OR_TEXT),
)
SCHEMA = _object(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "leaderworkerset.x-k8s.io/v1"},
    kind={"const": "LeaderWorkerSet"},
    metadata=_ANY,
    spec=_object(
        ("leaderWorkerTemplate",),
        replicas=_WHOLE,
        leaderWorkerTemplate=_TEMPLATE,
        rolloutStrategy=_ROLLOUT,
        startupPolicy={"enum": ["LeaderCreated", "LeaderReady"]},
        networkConfig=_object(("subdomainPolicy",), subdomainPolicy={"enum": ["Shared", "UniquePerReplica"]}),
    ),
)
