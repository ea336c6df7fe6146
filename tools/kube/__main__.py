"""`python -m kube --programs FOLDER --crd FILE`: the emitted LeaderWorkerSets, judged by a real API server.

FOLDER is what `build.sh` made; FILE is the CRD of kubernetes-sigs/lws, config/crd/bases. The server stores custom
resources and checks them as every Kubernetes cluster does: schema, strict fields, defaults, pruning, server-side apply,
the scale subresource. It has no pods, and the controller of LeaderWorkerSet with its webhook does not run. Run it in a
network name space of its own.
"""

from __future__ import annotations

import argparse
import json
import shlex
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import yaml

API, ETCD, PEERS = 16443, 12379, 12380
KIND = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# They ask for objects that only a whole cluster has
NO_ADMISSION = (
    "NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,"
    "ValidatingAdmissionPolicy,MutatingAdmissionPolicy"
)
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: a, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: a, user: {{client-certificate: {folder}/client.crt, client-key: {folder}/client.key}}}}]
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
current-context: a
"""
PLANS = (("--replicas", "1"), ("--replicas", "3"))


def certificates(folder: Path) -> None:
    """A client certificate of the group that may do everything, and the authority that signed it."""
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2",
        "req -newkey rsa:2048 -nodes -keyout client.key -out client.csr -subj /O=system:masters/CN=admin",
        "x509 -req -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out client.crt -days 2",
    ):
        subprocess.run(["openssl", *shlex.split(words)], cwd=folder, check=True, capture_output=True)
    (folder / "kubeconfig").write_text(KUBECONFIG.format(port=API, folder=folder))


def started(stack: ExitStack, log: Path, *argv: str) -> None:
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out)
    stack.callback(process.wait)
    stack.callback(process.kill)


def start_server(stack: ExitStack, programs: Path, folder: Path) -> httpx.Client:
    """etcd and the API server on loopback; a client that may do everything, once the server answers."""
    certificates(folder)
    peers, clients = f"http://127.0.0.1:{PEERS}", f"http://127.0.0.1:{ETCD}"
    words = [f"--listen-peer-urls={peers}", f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
    started(stack, folder / "etcd.log", str(programs / "etcd"), f"--data-dir={folder / 'etcd'}", *words)
    config = folder / "kubeconfig"
    words = [f"--etcd-servers={clients}", f"--secure-port={API}", "--bind-address=127.0.0.1"]
    words += [f"--cert-dir={folder / 'server'}", f"--client-ca-file={folder / 'ca.crt'}", f"--kubeconfig={config}"]
    words += [f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}"]
    words += ["--authentication-skip-lookup", f"--disable-admission-plugins={NO_ADMISSION}"]
    words += ["--enable-priority-and-fairness=false"]
    started(stack, folder / "api.log", str(programs / "apiextensions-apiserver"), *words)
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(folder / "client.crt", folder / "client.key")
    client = stack.enter_context(httpx.Client(base_url=f"https://127.0.0.1:{API}", verify=tls, timeout=60))
    wait_for(lambda: client.get("/version").status_code == 200, folder / "api.log")
    return client


def wait_for(true: Callable[[], bool], log: Path, within: float = 120.0) -> None:
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            if true():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    raise SystemExit(f"not within {within:g} s; the end of {log.name}:\n{log.read_text()[-2000:]}")


def install_crd(client: httpx.Client, crd: Path, log: Path) -> None:
    """Create the definition; it must be accepted as structural and be served."""
    made = yaml.load(crd.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    answer = client.post(CRDS, json=made, params={"fieldValidation": "Strict"})
    if answer.status_code != 201:
        raise SystemExit(f"the CRD: {answer.status_code} {answer.text[:500]}")
    wait_for(lambda: client.get(KIND).status_code == 200, log)
    status = client.get(f"{CRDS}/{made['metadata']['name']}").json()["status"]["conditions"]
    print("CRD:", ", ".join(f"{one['type']}={one['status']}" for one in status))


def emitted() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The objects of every shipped recipe that runs in containers, for one group of nodes and for several."""
    listed = subprocess.run([*_command("recipes", "list"), "--json"], capture_output=True, text=True, check=True)
    for name in sorted(one["name"] for one in json.loads(listed.stdout)["recipes"]):
        for words in PLANS:
            argv = [*_command("plan", name), *words, "--emit", "k8s", "--json", "--force", "the export is judged"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                print(
                    f"no files: {name} {' '.join(words)}: {(done.stdout + done.stderr).strip().splitlines()[-1]}"[:200]
                )
                continue
            (file,) = json.loads(done.stdout)["files"]
            yield f"{name} {' '.join(words)}", list(yaml.safe_load_all(file["text"]))


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "sparkwright", *words]


def lost_paths(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Paths of what was sent and is not stored as it was."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [found for key, value in sent.items() for found in lost_paths(value, stored.get(key), f"{path}.{key}")]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        pairs = enumerate(zip(sent, stored, strict=True))
        return [found for n, (mine, theirs) in pairs for found in lost_paths(mine, theirs, f"{path}[{n}]")]
    return [] if sent == stored else [path]


def accept(client: httpx.Client, entry: Mapping[str, Any]) -> list[str]:
    """Troubles of one LeaderWorkerSet: created, read back, applied again, scaled, and taken away."""
    name, strict = entry["metadata"]["name"], {"fieldValidation": "Strict"}
    answer = client.post(KIND, json=entry, params=strict)
    if answer.status_code != 201:
        return [f"{answer.status_code} {answer.json().get('message', '')[:300]}"]
    stored, troubles = client.get(f"{KIND}/{name}").json(), []
    troubles += [f"not kept: {path}" for path in lost_paths(entry, stored)]
    apply = {"params": {**strict, "fieldManager": "test", "force": "true"}, "content": json.dumps(entry)}
    kind = {"Content-Type": "application/apply-patch+yaml"}
    again = client.patch(f"{KIND}/{name}", headers=kind, **apply)  # type: ignore[arg-type]
    if again.status_code != 200 or again.json()["metadata"]["generation"] != stored["metadata"]["generation"]:
        troubles.append(f"applied again: {again.status_code} {again.text[:200]}")
    scale = client.get(f"{KIND}/{name}/scale").json()
    scaled = client.put(f"{KIND}/{name}/scale", json={**scale, "spec": {"replicas": 5}})
    if scaled.status_code != 200 or client.get(f"{KIND}/{name}").json()["spec"]["replicas"] != 5:
        troubles.append(f"scaled: {scaled.status_code} {scaled.text[:200]}")
    client.delete(f"{KIND}/{name}")
    return troubles


def worker(spec: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    return found


DEFECTS: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "a misspelt field": lambda spec: spec.update(replica=1),
    "a negative number of replicas": lambda spec: spec.update(replicas=-1),
    "an unknown start policy": lambda spec: spec.update(startupPolicy="Never"),
    "no worker template": lambda spec: spec["leaderWorkerTemplate"].pop("workerTemplate"),
    "a pod without containers": lambda spec: worker(spec).pop("containers"),
    "a misspelt field of the pod": lambda spec: worker(spec).update(hostNetworks=True),
    "a size that is text": lambda spec: spec["leaderWorkerTemplate"].update(size="two"),
}


def refusals(client: httpx.Client, good: Mapping[str, Any]) -> list[str]:
    """Defects that the server must refuse; what it takes is a trouble."""
    found = []
    for what, change in DEFECTS.items():
        bad = json.loads(json.dumps(good))
        change(bad["spec"])
        answer = client.post(KIND, json=bad, params={"fieldValidation": "Strict", "dryRun": "All"})
        print(f"  {what}: {answer.status_code}")
        if answer.status_code not in (400, 422):
            found.append(f"{what} was not refused: {answer.status_code}")
    return found


def judged(client: httpx.Client) -> tuple[int, list[str]]:
    """The number of LeaderWorkerSets, and all troubles."""
    count, troubles, first = 0, list[str](), None
    for name, objects in emitted():
        sets = [one for one in objects if one["kind"] == "LeaderWorkerSet"]
        for entry in sets:
            first = first or entry
            troubles += [f"{name}: {one}" for one in accept(client, entry)]
        count += len(sets)
    print("refused:")
    return count, [*troubles, *refusals(client, first or {"spec": {}})]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kube")
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--crd", type=Path, required=True)
    given = parser.parse_args(words)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        client = start_server(stack, given.programs.absolute(), folder)
        version = client.get("/version").json()
        print(f"API server of Kubernetes {version['major']}.{version['minor']}, {version['goVersion']}")
        install_crd(client, given.crd, folder / "api.log")
        count, troubles = judged(client)
    print(f"{count} LeaderWorkerSets created, read back, applied again and scaled; {len(troubles)} troubles")
    print("\n".join(troubles))
    return int(bool(troubles) or not count)


if __name__ == "__main__":
    sys.exit(main())
