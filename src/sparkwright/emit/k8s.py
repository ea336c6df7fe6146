"""Kubernetes: head and workers as one LeaderWorkerSet group, for those who outgrow ssh.

Read for leaderworkerset.x-k8s.io/v1 (kubernetes-sigs/lws, api/leaderworkerset/v1): a leader template and one worker
template; a group whose pod restarts is made again as a whole. A rank belongs to its node here as everywhere else: the
pod reads the node's name and runs that node's script, so interface, HCAs and weights are those of the facts. The
master stays the head's fabric address: LWS_LEADER_ADDRESS resolves to the node's first address, which with a fabric
of its own is the management network.

Groups of one node that differ in nothing but the node are the replicas of one LeaderWorkerSet. Larger groups are a
LeaderWorkerSet each: the controller pairs any leader with any worker, and a worker's script has its head's address.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.values import dataclass, replace
from sparkwright.emit import source as common
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.engines.catalog import traits
from sparkwright.remote import docker

RDMA = "rdma/hca_shared_devices_a"
_SCRIPTS_AT = "/run/sparkwright/plan"
_LABEL = "app.kubernetes.io/name"
_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_NODE = "SPARKWRIGHT_NODE"
# Of a label's 63: workers carry NAME-0 and a revision's hash of 10 as the label controller-revision-hash (LWS makes
# StatefulSets), the Service is NAME-api.
_LONGEST = 63 - len("-0-") - 10
_ROUTER = (
    "The Service spreads connections over the groups, as kube-proxy does: it knows neither prompts nor load. A router",
    "that does goes in its place: llm-d, an endpoint picker of the Gateway API inference extension, or the router of",
    "vLLM's production-stack.",
)


@dataclass(frozen=True, slots=True)
class _Set:
    """One LeaderWorkerSet. name: its own. model: name of labels, Secret and Service, which all sets share.

    replicas: groups in it; more than one only if the source's ranks are groups of one node each. several: it is not
    the model's only group, so its pods get requests only while they are ready.
    """

    name: str
    model: str
    source: DeploymentSource
    replicas: int = 1
    several: bool = False

    @property
    def specs(self) -> tuple[RankSpec, ...]:
        return self.source.specs

    @property
    def leaders(self) -> tuple[RankSpec, ...]:
        return self.specs if self.replicas > 1 else self.specs[:1]

    @property
    def workers(self) -> tuple[RankSpec, ...]:
        """The ranks that are made from the worker template: all of them where a group is one pod."""
        return self.specs if self.replicas > 1 else self.specs[1:] or self.specs


def emit_k8s(source: DeploymentSource) -> tuple[EmittedFile, ...]:
    """One file for `kubectl apply -f`. Raises UsageError for the process runtime, and where one template cannot do."""
    return k8s_groups(source.name, [source])


def k8s_groups(model: str, sources: Sequence[DeploymentSource]) -> tuple[EmittedFile, ...]:
    """One file with all groups of a model and the Service in front of them. Raises UsageError, as `emit_k8s` does."""
    for source in sources:
        common.no_docker(source, "k8s")
        _known_program(source)
    if len({source.plan.port for source in sources}) > 1:
        raise UsageError(
            "--emit k8s: the groups listen on different ports, since their nodes are one machine",
            hint="a cluster file with nodes that are machines of their own",
        )
    sets = _sets(model, sources)
    for one in sets:
        _one_template(one)
    objects = [entry for one in sets for entry in (_scripts(one), _group(one))]
    text = "".join(f"---\n{common.as_yaml(entry)}" for entry in [*objects, *_service(sets[0].model, sources)])
    return (EmittedFile(f"{sets[0].model}.yaml", common.comment(_head(sets, sources)) + text),)


def _sets(model: str, sources: Sequence[DeploymentSource]) -> list[_Set]:
    name = kubernetes_name(model)
    first, count = sources[0], len(sources)
    if count == 1:
        return [_Set(name, name, first)]
    specs = tuple(spec for source in sources for spec in source.specs)
    if len(specs) == count and not _unlike(specs):
        together = replace(first, plan=replace(first.plan, deployment=model, specs=specs))
        return [_Set(name, name, together, count, several=True)]
    ends = [f"-r{number}" for number in range(1, count + 1)]
    return [
        _Set(kubernetes_name(model, len(end)) + end, name, source, several=True)
        for end, source in zip(ends, sources, strict=True)
    ]


def kubernetes_name(name: str, room: int = 0) -> str:
    """The name as Kubernetes takes it: an RFC 1035 label with room for what is made of it, and for so many more."""
    words = re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")
    return (words if words[:1].isalpha() else f"d-{words}")[: _LONGEST - room].strip("-")


def _known_program(source: DeploymentSource) -> None:
    if any(spec.entrypoint is None for spec in source.specs):
        raise UsageError(
            "--emit k8s: the image's own entry point is not known, and the rank's script must start it",
            hint="name it in the recipe's `engine.entrypoint`",
        )


def _one_template(one: _Set) -> None:
    """All workers are made from one template: image and folders must be the same on their nodes."""
    if unlike := _unlike(one.workers):
        raise UsageError(
            f"--emit k8s: {unlike}, and a LeaderWorkerSet has one template for all workers",
            hint="give all nodes the same `paths` in the cluster file",
        )


def _unlike(specs: Sequence[RankSpec]) -> str:
    """The first difference of two ranks that one template cannot have, '' if there is none."""
    first, *others = specs
    for spec in others:
        if first.image != spec.image:
            return f"{spec.node} has image {spec.image}, {first.node} has {first.image}"
        pairs = zip_longest((m.label for m in first.mounts), (m.label for m in spec.mounts), fillvalue="nothing more")
        if found := next((pair for pair in pairs if pair[0] != pair[1]), None):
            return f"{spec.node} mounts {found[1]}, {first.node} {found[0]}"
    return ""


def _head(sets: Sequence[_Set], sources: Sequence[DeploymentSource]) -> tuple[str, ...]:
    specs = [spec for source in sources for spec in source.specs]
    files = {file.name: file.secret for spec in specs for file in spec.files if file.secret}
    secrets = [f"--from-literal={one}=..." for one in dict.fromkeys(n for s in sources for n in common.secret_names(s))]
    secrets += [f"--from-file={one}" for one in files]
    model, first = sets[0].model, sources[0]
    return (
        common.rank_title(first) if len(sources) == 1 else _groups_title(sets, sources),
        "Needs the LeaderWorkerSet controller, NVIDIA's device plugin and, with RDMA, the k8s-rdma-shared-dev-plugin:",
        f"{RDMA} is the name in its example configuration; put yours.",
        f"Nodes are called as in the cluster file: {', '.join(spec.node for spec in specs)}. They must be the",
        "names of `kubectl get nodes`; else change them in the ConfigMap's keys and in both nodeAffinity lists.",
        *((f"First: kubectl create secret generic {model} {' '.join(secrets)}",) if secrets else ()),
        *(f"Of {one}: {common.to_fill(one, secret).strip()}" for one, secret in files.items()),
        "No liveness probe: `/health` goes on answering 200 when a remote rank has died. Ask for a token instead.",
        *(f"{'The head' if len(sources) == 1 else 'A head'} listens on {at}." for at in _addresses(sources)),
        *_reach(sets, sources),
    )


def _groups_title(sets: Sequence[_Set], sources: Sequence[DeploymentSource]) -> str:
    """`2 groups of gpt-oss-20b, replicas of one LeaderWorkerSet`, with the recipe."""
    how = "replicas of one LeaderWorkerSet" if len(sets) == 1 else "a LeaderWorkerSet each"
    one = sets[0].source if len(sets) == 1 else sources[0]
    recipe = one.plan.recipe
    return f"{len(sources)} groups of {recipe.deployment}, {how} (recipe {recipe.label}, hash {recipe.hash or 'none'})"


def _addresses(sources: Sequence[DeploymentSource]) -> list[str]:
    return [f"{one.plan.bind}:{one.plan.port} of {one.plan.head}" for one in sources]


def _reach(sets: Sequence[_Set], sources: Sequence[DeploymentSource]) -> tuple[str, ...]:
    if not _inside(sources):
        return _ROUTER if len(sources) > 1 else ()
    port = sources[0].plan.port
    if len(sources) == 1:
        return (f"Reach it with `kubectl port-forward pod/{sets[0].name}-0 {port}`.",)
    return (
        "So there is no Service. With `serving.expose: all` or `fabric` and an API key in the recipe, these files have",
        f"one. Until then: `kubectl port-forward pod/{sets[0].name}-0 {port}`.",
    )


def _meta(name: str, model: str) -> dict[str, Any]:
    return {"name": name, "labels": {_LABEL: model}}


def _file_key(spec: RankSpec, name: str) -> str:
    """A key of the ConfigMap for a rank's file. No node's name has a `_` there."""
    return f"{spec.node}_{name}"


def _scripts(one: _Set) -> dict[str, Any]:
    """NODE.sh for each node, and its rank's files as NODE_FILE."""
    data = {f"{spec.node}.sh": _script(one, spec) for spec in one.specs}
    for spec in one.specs:
        data |= {_file_key(spec, file.name): file.text for file in spec.files if not file.secret}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(f"{one.name}-plan", one.model), "data": data}


def _script(one: _Set, spec: RankSpec) -> str:
    """The script of this node's pod: its own values, its files in argv's places, then `exec` of the engine."""
    shared = common.shared_by_all([other.env for other in one.specs])
    exports = [f"export {key}={shlex.quote(value)}" for key, value in spec.env.items() if key not in shared]
    plain = [file.name for file in spec.files if not file.secret]
    copies = [
        shlex.join(("cp", f"{_SCRIPTS_AT}/{_file_key(spec, name)}", f"{docker.FILES_AT}/{name}")) for name in plain
    ]
    program = shlex.join((*(spec.entrypoint or ()), *spec.argv))
    return "\n".join((f"# {common.rank_title(one.source, spec)}", "set -e", *exports, *copies, f"exec {program}", ""))


def _group(one: _Set) -> dict[str, Any]:
    size = len(one.specs) // one.replicas
    leader = {"leaderTemplate": _pod(one, one.leaders)} if size > 1 else {}
    templates = {**leader, "workerTemplate": _pod(one, one.workers)}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _meta(one.name, one.model),
        "spec": {
            "replicas": one.replicas,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                **templates,
            },
        },
    }


def _pod(one: _Set, specs: Sequence[RankSpec]) -> dict[str, Any]:
    first = specs[0]
    return {
        "metadata": {"labels": {_LABEL: one.model}},
        "spec": {
            "hostNetwork": True,
            "hostIPC": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "terminationGracePeriodSeconds": int(one.source.grace),
            "affinity": _placed(one, specs),
            "containers": [_container(one, specs)],
            "volumes": _volumes(one, first),
        },
    }


def _placed(one: _Set, specs: Sequence[RankSpec]) -> dict[str, Any]:
    """The affinity: each rank on its own node, never two on one: they share the network's ports and the GPU."""
    nodes = {"key": "kubernetes.io/hostname", "operator": "In", "values": [spec.node for spec in specs]}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {_LABEL: one.model}}}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [nodes]}]}
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
    }


def _container(one: _Set, specs: Sequence[RankSpec]) -> dict[str, Any]:
    first = specs[0]
    shared = common.shared_by_all([spec.env for spec in one.specs])
    secrets = dict.fromkeys(key for spec in specs for key in spec.secrets)
    # Kubernetes takes `$(NAME)` for a variable
    env: list[dict[str, Any]] = [{"name": key, "value": value.replace("$(", "$$(")} for key, value in shared.items()]
    env += [{"name": key, "valueFrom": {"secretKeyRef": {"name": one.model, "key": key}}} for key in secrets]
    env += [{"name": _NODE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    devices = {**({"nvidia.com/gpu": 1} if first.gpu else {}), **({RDMA: 1} if first.rdma else {})}
    return {
        "name": "rank",
        "image": first.image,
        "command": ["/bin/sh", "-c", f'exec /bin/sh "{_SCRIPTS_AT}/${_NODE}.sh"'],
        "env": env,
        **({"resources": {"limits": devices}} if devices else {}),
        # RDMA pins memory: without the right and without a memlock limit of the kubelet's, ibv_reg_mr fails.
        **({"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if first.rdma else {}),
        **({"readinessProbe": _ready(one)} if first in one.leaders and one.several and _open([one.source]) else {}),
        "volumeMounts": _mounts(first),
    }


def _ready(one: _Set) -> dict[str, Any]:
    """Guards the Service and a rolling update against a group that still loads."""
    port = one.source.plan.port
    # Of an engine of the user's own only the port is known
    asked = (
        {"tcpSocket": {"port": port}}
        if traits(one.source.plan.recipe).opaque
        else {"httpGet": {"path": "/health", "port": port}}
    )
    return {**asked, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}


def _mounts(spec: RankSpec) -> list[dict[str, Any]]:
    """Files whose content is secret come out of the Secret, under the file's name."""
    found: list[dict[str, Any]] = [
        {"name": f"mount-{n}", "mountPath": m.container, "readOnly": m.read_only} for n, m in enumerate(spec.mounts)
    ]
    found += [{"name": "files", "mountPath": docker.FILES_AT}] if spec.files else []
    for name in (file.name for file in spec.files if file.secret):
        path = f"{docker.FILES_AT}/{name}"
        found.append({"name": "secret", "mountPath": path, "subPath": name, "readOnly": True})
    found += [{"name": "shm", "mountPath": "/dev/shm"}]
    return [*found, {"name": "plan", "mountPath": _SCRIPTS_AT, "readOnly": True}]


def _volumes(one: _Set, spec: RankSpec) -> list[dict[str, Any]]:
    """Weights from the node's own disk, as they were staged there; caches where they outlive the pod."""
    folders: list[dict[str, Any]] = [
        {"name": f"mount-{n}", "hostPath": {"path": m.host} | ({} if m.read_only else {"type": "DirectoryOrCreate"})}
        for n, m in enumerate(spec.mounts)
    ]
    files: list[dict[str, Any]] = [{"name": "files", "emptyDir": {}}] if spec.files else []
    secret = any(file.secret for file in spec.files)
    files += [{"name": "secret", "secret": {"secretName": one.model, "defaultMode": 0o400}}] if secret else []
    return [
        *folders, *files,
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(spec.shm_bytes)}},
        {"name": "plan", "configMap": {"name": f"{one.name}-plan"}},
    ]  # fmt: skip


def _inside(sources: Sequence[DeploymentSource]) -> bool:
    return any(source.plan.bind.startswith("127.") for source in sources)


def _open(sources: Sequence[DeploymentSource]) -> bool:
    return all(source.plan.bind == "0.0.0.0" for source in sources)


def _service(model: str, sources: Sequence[DeploymentSource]) -> list[dict[str, Any]]:
    """The heads' API. On all addresses: by the heads' labels; on the fabric's: by those; on loopback: none."""
    if _inside(sources):
        return []
    ports = [{"name": "http", "port": sources[0].plan.port, "protocol": "TCP"}]
    meta = _meta(f"{model}-api", model)
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": meta}
    if _open(sources):
        return [service | {"spec": {"selector": {_LABEL: model, _INDEX: "0"}, "ports": ports}}]
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {**meta["labels"], "kubernetes.io/service-name": f"{model}-api"}},
        "addressType": "IPv4", "ports": ports,
        "endpoints": [{"addresses": [source.plan.bind]} for source in sources],
    }  # fmt: skip
    return [service | {"spec": {"ports": ports}}, slice_]
