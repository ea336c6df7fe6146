"""Kubernetes: head and workers as one LeaderWorkerSet group, for those who outgrow ssh.

Read for leaderworkerset.x-k8s.io/v1 (kubernetes-sigs/lws, api/leaderworkerset/v1): a leader template and one worker
template; a group whose pod restarts is made again as a whole. A rank belongs to its node here as everywhere else: the
pod reads the node's name and runs that node's script, so interface, HCAs and weights are those of the facts. The
master stays the head's fabric address: LWS_LEADER_ADDRESS resolves to the node's first address, which with a fabric
of its own is the management network.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import RankSpec
from sparkwright.emit import source as common
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.remote import docker

RDMA = "rdma/hca_shared_devices_a"
_SCRIPTS_AT = "/run/sparkwright/plan"
_SET = "leaderworkerset.sigs.k8s.io/name"
_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
_NODE = "SPARKWRIGHT_NODE"
# Of a label's 63: workers carry NAME-0 and a revision's hash of 10 as the label controller-revision-hash (LWS makes
# StatefulSets), the Service is NAME-api.
_LONGEST = 63 - len("-0-") - 10


def k8s(source: DeploymentSource) -> tuple[EmittedFile, ...]:
    """One file for `kubectl apply -f`. Raises UsageError for the process runtime, and where one template cannot do."""
    common.no_docker(source, "k8s")
    _one_template(source)
    objects = [_scripts(source), _group(source), *_service(source)]
    text = "".join(f"---\n{common.as_yaml(entry)}" for entry in objects)
    return (EmittedFile(f"{kubernetes_name(source)}.yaml", common.comment(_head(source)) + text),)


def kubernetes_name(source: DeploymentSource) -> str:
    """The deployment's name as Kubernetes takes it: an RFC 1035 label with room for what is made of it."""
    words = re.sub(r"[^a-z0-9-]", "-", source.name.lower()).strip("-")
    return (words if words[:1].isalpha() else f"d-{words}")[:_LONGEST].strip("-")


def _one_template(source: DeploymentSource) -> None:
    """All workers are made from one template: image and folders must be the same on their nodes."""
    if any(spec.entrypoint is None for spec in source.specs):
        raise UsageError(
            "--emit k8s: the image's own entry point is not known, and the rank's script must start it",
            hint="name it in the recipe's `engine.entrypoint`",
        )
    first, *others = source.specs[1:] or source.specs
    for spec in others:
        if first.image != spec.image:
            unlike = f"{spec.node} has image {spec.image}, {first.node} has {first.image}"
        else:
            pairs = zip_longest(
                (m.label for m in first.mounts), (m.label for m in spec.mounts), fillvalue="nothing more"
            )
            here, there = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
            unlike = f"{spec.node} mounts {there}, {first.node} {here}" if here else ""
        if unlike:
            raise UsageError(
                f"--emit k8s: {unlike}, and a LeaderWorkerSet has one template for all workers",
                hint="give all nodes the same `paths` in the cluster file",
            )


def _head(source: DeploymentSource) -> tuple[str, ...]:
    files = {file.name: file.secret for spec in source.specs for file in spec.files if file.secret}
    secrets = [f"--from-literal={one}=..." for one in common.secret_names(source)]
    secrets += [f"--from-file={one}" for one in files]
    plan = source.plan
    reach = (
        f" Reach it with `kubectl port-forward pod/{kubernetes_name(source)}-0 {plan.port}`." if _inside(source) else ""
    )
    return (
        common.rank_title(source),
        "Needs the LeaderWorkerSet controller, NVIDIA's device plugin and, with RDMA, the k8s-rdma-shared-dev-plugin:",
        f"{RDMA} is the name in its example configuration; put yours.",
        f"Nodes are called as in the cluster file: {', '.join(spec.node for spec in source.specs)}. They must be the",
        "names of `kubectl get nodes`; else change them in the ConfigMap's keys and in both nodeAffinity lists.",
        *((f"First: kubectl create secret generic {kubernetes_name(source)} {' '.join(secrets)}",) if secrets else ()),
        *(f"Of {one}: {common.to_fill(one, secret).strip()}" for one, secret in files.items()),
        "No probe: `/health` goes on answering 200 when a remote rank has died. Ask for a token instead.",
        f"The head listens on {plan.bind}:{plan.port} of {plan.head}.{reach}",
    )


def _meta(source: DeploymentSource, suffix: str = "") -> dict[str, Any]:
    return {"name": f"{kubernetes_name(source)}{suffix}", "labels": {"app.kubernetes.io/name": kubernetes_name(source)}}


def _scripts(source: DeploymentSource) -> dict[str, Any]:
    """NODE.sh for each node, and its rank's files as rankK.NAME."""
    data = {f"{spec.node}.sh": _script(source, spec) for spec in source.specs}
    for spec in source.specs:
        data |= {f"rank{spec.rank}.{file.name}": file.text for file in spec.files if not file.secret}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(source, "-plan"), "data": data}


def _script(source: DeploymentSource, spec: RankSpec) -> str:
    """The script of this node's pod: its own values, its files in argv's places, then `exec` of the engine."""
    shared = common.shared_by_all([other.env for other in source.specs])
    exports = [f"export {key}={shlex.quote(value)}" for key, value in spec.env.items() if key not in shared]
    plain = [file.name for file in spec.files if not file.secret]
    copies = [shlex.join(("cp", f"{_SCRIPTS_AT}/rank{spec.rank}.{one}", f"{docker.FILES_AT}/{one}")) for one in plain]
    program = shlex.join((*(spec.entrypoint or ()), *spec.argv))
    return "\n".join((f"# {common.rank_title(source, spec)}", "set -e", *exports, *copies, f"exec {program}", ""))


def _group(source: DeploymentSource) -> dict[str, Any]:
    head, *workers = source.specs
    leader = {"leaderTemplate": _pod(source, [head])} if workers else {}
    templates = {**leader, "workerTemplate": _pod(source, workers or [head])}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _meta(source),
        "spec": {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": len(source.specs),
                "restartPolicy": "RecreateGroupOnPodRestart",
                **templates,
            },
        },
    }


def _pod(source: DeploymentSource, specs: Sequence[RankSpec]) -> dict[str, Any]:
    first = specs[0]
    return {
        "metadata": {"labels": {"app.kubernetes.io/name": kubernetes_name(source)}},
        "spec": {
            "hostNetwork": True,
            "hostIPC": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "terminationGracePeriodSeconds": int(source.grace),
            "affinity": _placed(source, specs),
            "containers": [_container(source, specs)],
            "volumes": _volumes(source, first),
        },
    }


def _placed(source: DeploymentSource, specs: Sequence[RankSpec]) -> dict[str, Any]:
    """The affinity: each rank on its own node, never two on one: they share the network's ports and the GPU."""
    nodes = {"key": "kubernetes.io/hostname", "operator": "In", "values": [spec.node for spec in specs]}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {_SET: kubernetes_name(source)}}}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [nodes]}]}
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
    }


def _container(source: DeploymentSource, specs: Sequence[RankSpec]) -> dict[str, Any]:
    first = specs[0]
    shared = common.shared_by_all([spec.env for spec in source.specs])
    secrets = dict.fromkeys(key for spec in specs for key in spec.secrets)
    # Kubernetes takes `$(NAME)` for a variable
    env: list[dict[str, Any]] = [{"name": key, "value": value.replace("$(", "$$(")} for key, value in shared.items()]
    env += [
        {"name": key, "valueFrom": {"secretKeyRef": {"name": kubernetes_name(source), "key": key}}} for key in secrets
    ]
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
        "volumeMounts": _mounts(first),
    }


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


def _volumes(source: DeploymentSource, spec: RankSpec) -> list[dict[str, Any]]:
    """Weights from the node's own disk, as they were staged there; caches where they outlive the pod."""
    folders: list[dict[str, Any]] = [
        {"name": f"mount-{n}", "hostPath": {"path": m.host} | ({} if m.read_only else {"type": "DirectoryOrCreate"})}
        for n, m in enumerate(spec.mounts)
    ]
    files: list[dict[str, Any]] = [{"name": "files", "emptyDir": {}}] if spec.files else []
    secret = any(file.secret for file in spec.files)
    files += (
        [{"name": "secret", "secret": {"secretName": kubernetes_name(source), "defaultMode": 0o400}}] if secret else []
    )
    return [
        *folders, *files,
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(spec.shm_bytes)}},
        {"name": "plan", "configMap": {"name": f"{kubernetes_name(source)}-plan"}},
    ]  # fmt: skip


def _inside(source: DeploymentSource) -> bool:
    return source.plan.bind.startswith("127.")


def _service(source: DeploymentSource) -> list[dict[str, Any]]:
    """The head's API. On all addresses: by the head's labels; on the fabric's: by that address; on loopback: none."""
    if _inside(source):
        return []
    port = source.plan.port
    ports = [{"name": "http", "port": port, "protocol": "TCP"}]
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": _meta(source, "-api")}
    if source.plan.bind == "0.0.0.0":
        return [service | {"spec": {"selector": {_SET: kubernetes_name(source), _INDEX: "0"}, "ports": ports}}]
    meta = _meta(source, "-api")
    meta["labels"] |= {"kubernetes.io/service-name": f"{kubernetes_name(source)}-api"}
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta, "addressType": "IPv4",
        "ports": ports, "endpoints": [{"addresses": [source.plan.bind]}],
    }  # fmt: skip
    return [service | {"spec": {"ports": ports}}, slice_]
