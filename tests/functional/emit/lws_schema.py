"""The LeaderWorkerSet's own fields as JSON schema, for tests: no package index carries the CRD.

Written from the published API types (kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go) and
compared field by field with the CRD of commit 060ab4da (2026-08-21, after v0.9.0); `tools/kube` applies the
emitted files to a real API server with that CRD. Names, types, enumerations, limits (also those of its webhook), and
no other fields. The pod in a template is left to Kubernetes' own schemas.
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
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_WHOLE = {"type": "integer", "minimum": 0}
# The metadata of a template has these five fields alone; an API server drops or refuses any other.
_POD = _object(
    metadata=_object(
        name=_TEXT, namespace=_TEXT, labels=_TEXTS, annotations=_TEXTS, finalizers={"type": "array", "items": _TEXT}
    ),
    spec={"type": "object", "required": ["containers"]},
)
_INT_OR_TEXT = {"type": ["integer", "string"]}
_TEMPLATE = _object(
    ("workerTemplate",),
    leaderTemplate=_POD,
    workerTemplate=_POD,
    size={"type": "integer", "minimum": 1},
    restartPolicy={"enum": ["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]},
    subGroupPolicy=_object(
        subGroupPolicyType={"enum": ["LeaderWorker", "LeaderExcluded"]}, subGroupSize={"type": "integer", "minimum": 1}
    ),
    volumeClaimTemplates={"type": "array"},
    persistentVolumeClaimRetentionPolicy=_object(whenDeleted=_TEXT, whenScaled=_TEXT),
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
        replicas={**_WHOLE, "maximum": 1_000_000},
        leaderWorkerTemplate=_TEMPLATE,
        rolloutStrategy=_ROLLOUT,
        startupPolicy={"enum": ["LeaderCreated", "LeaderReady"]},
        networkConfig=_object(("subdomainPolicy",), subdomainPolicy={"enum": ["Shared", "UniquePerReplica"]}),
    ),
)
