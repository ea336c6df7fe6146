"""The files of `plan --emit`, judged by the programs and schemas of those for whom they are written."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from functional.emit.lws_schema import SCHEMA
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.emit.catalog import FORMS, emit_groups
from sparkwright.emit.source import DeploymentSource
from sparkwright.remote import docker
from unit.emit import samples

SOURCES: dict[str, Callable[[], DeploymentSource]] = {
    "deepseek": samples.deepseek,
    "files": samples.with_files,
    "awkward": samples.awkward,
    "twin": lambda: samples.simulator("docker"),
    "one-node": lambda: samples.simulator("docker", nodes=1),
}
ALL = {**SOURCES, "process": samples.simulator}
PUBLISHED = Path("/usr/lib/python3/dist-packages/compose/config/compose_spec.json")


@pytest.fixture
def emit_files(tmp_path: Path) -> Callable[[DeploymentSource, str], Path]:
    """Writes one form into a folder, as the command does, and fills in what is left to the user."""

    def write(source: DeploymentSource, form: str) -> Path:
        for file in FORMS[form](source):
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text)
            path.chmod(file.mode)
        return tmp_path

    return write


def output_of(*words: str, cwd: Path | None = None, **environ: str) -> str:
    """The output of a program; its exit code must be 0."""
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expected(spec: RankSpec, secret: bool) -> list[str]:
    entry = list(spec.entrypoint or ())
    start = [docker.SECRETS_AT, *entry] if secret else entry[1:]
    return [*start, *spec.argv]


@pytest.mark.parametrize("name", SOURCES)
def test_compose_understands_each_rank_as_planned(
    name: str, emit_files: Callable[[DeploymentSource, str], Path]
) -> None:
    """Docker Compose resolves each node's files to exactly the planned words, environment and mounts."""
    source = SOURCES[name]()
    folder = emit_files(source, "compose")
    secret = any(spec.secrets for spec in source.specs)
    for spec in source.specs:
        resolved = yaml.safe_load(output_of("docker-compose", "config", cwd=folder / spec.node))["services"]["rank"]
        words = [word.replace("$$", "$") for word in shlex.split(resolved.get("command") or "")]
        assert words == expected(spec, secret)
        assert {k: v.replace("$$", "$") for k, v in resolved["environment"].items()} == dict(spec.env)
        assert resolved["container_name"] == source.container(spec)
        assert resolved["network_mode"] == "host" and resolved["ulimits"]["memlock"] == {"hard": -1, "soft": -1}
        mounts = [(v["source"], v["target"]) for v in resolved.get("volumes", [])]
        assert mounts[: len(spec.mounts)] == [(m.host, m.container) for m in spec.mounts]


@pytest.mark.parametrize("name", SOURCES)
def test_compose_files_fit_the_published_schema(name: str, emit_files: Callable[[DeploymentSource, str], Path]) -> None:
    """Each compose.yaml is valid by the Compose specification's JSON schema; one text does for all nodes."""
    source = SOURCES[name]()
    folder = emit_files(source, "compose")
    published = jsonschema.Draft201909Validator(json.loads(PUBLISHED.read_text()))
    texts = {(folder / spec.node / "compose.yaml").read_text() for spec in source.specs}
    for text in texts:
        published.validate(yaml.safe_load(text))
    # A quote in what differs cannot stand in a .env that all of Compose's versions read alike.
    assert len(texts) == (2 if name == "awkward" else 1)


@pytest.mark.parametrize("name", ALL)
def test_scripts_pass_shellcheck(name: str, emit_files: Callable[[DeploymentSource, str], Path]) -> None:
    """ShellCheck has nothing to report about any node's script, read as POSIX sh."""
    folder = emit_files(ALL[name](), "shell")
    assert output_of("shellcheck", "--shell=sh", *(str(path) for path in folder.glob("*/rank.sh"))) == ""


@pytest.mark.parametrize("name", SOURCES)
def test_a_script_calls_docker_as_up_does(
    name: str, emit_files: Callable[[DeploymentSource, str], Path], tmp_path: Path
) -> None:
    """Run by a real shell, a node's script gives docker exactly the words that `up` gives it, but for our labels."""
    source = SOURCES[name]()
    folder = emit_files(source, "shell")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for program, does in (("docker", r"""printf '%s\0' docker "$@" """), ("mkdir", ":")):
        (bin_folder / program).write_text(f"#!/bin/sh\n{does}\n")
        (bin_folder / program).chmod(0o755)
    for spec in source.specs:
        here = folder / spec.node
        path = f"{bin_folder}:{os.environ['PATH']}"
        words = output_of(str(here / "rank.sh"), "start", PATH=path).split("\0")[:-1]
        secrets = f"{here}/secrets.env" if spec.secrets else ""
        command = docker.run(replace(spec, labels={}), source.container(spec), secrets, files_dir=f"{here}/files")
        assert words == list(command.argv)


@pytest.mark.parametrize("name", ALL)
def test_systemd_accepts_the_units(name: str, emit_files: Callable[[DeploymentSource, str], Path]) -> None:
    """`systemd-analyze verify` finds nothing in any unit: no unknown key, no missing program, no bad quoting."""
    folder = emit_files(ALL[name](), "systemd")
    for unit in folder.glob("*/*.service"):
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
        about_it = [line for line in done.stderr.splitlines() if unit.name in line or str(unit) in line]
        assert (done.returncode, about_it) == (0, [])


def manifest(source: DeploymentSource) -> list[dict[str, Any]]:
    (file,) = FORMS["k8s"](source)
    return list(yaml.safe_load_all(file.text))


GROUPS: dict[str, Callable[[], list[DeploymentSource]]] = {
    **{name: lambda make=make: [make()] for name, make in SOURCES.items()},  # type: ignore[misc]
    "replicas": lambda: samples.groups(samples.one_node(), 3, "0.0.0.0"),
    "groups": lambda: samples.groups(samples.with_files(), 2),
    "groups-open": lambda: samples.groups(samples.awkward(), 2, "0.0.0.0"),
}


@pytest.mark.parametrize("name", GROUPS)
def test_kubernetes_accepts_every_object(name: str) -> None:
    """Kubernetes' own strict schemas accept the objects and both pod templates; the LeaderWorkerSet fits its API."""
    (file,) = emit_groups("k8s", "model", GROUPS[name]())
    for entry in yaml.safe_load_all(file.text):
        if entry["kind"] != "LeaderWorkerSet":
            kubernetes_validate.validate(entry, "1.37", strict=True)
            continue
        jsonschema.validate(entry, SCHEMA)
        templates = {k: v for k, v in entry["spec"]["leaderWorkerTemplate"].items() if k.endswith("Template")}
        for key, template in templates.items():
            pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": key.lower()}, "template": template}
            kubernetes_validate.validate(pod, "1.37", strict=True)


def test_the_validators_can_refuse() -> None:
    """A misspelt field of the group and one of the pod are both errors: the schemas above are not empty."""
    group = next(entry for entry in manifest(samples.deepseek()) if entry["kind"] == "LeaderWorkerSet")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**group, "spec": {**group["spec"], "replica": 1}}, SCHEMA)
    template = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    wrong = {**template, "spec": {**template["spec"], "hostNetworks": True}}
    pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": wrong}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, "1.37", strict=True)


@pytest.mark.parametrize("name", SOURCES)
def test_a_pod_runs_what_its_node_plans(name: str, tmp_path: Path) -> None:
    """The pod's command, run by a real shell under the node's name, ends in the planned words and environment."""
    source = SOURCES[name]()
    objects = {entry["kind"]: entry for entry in manifest(source)}
    group = objects["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    tell, path = tmp_path / "tell", {"PATH": os.environ["PATH"]}
    tell.write_text("#!/bin/sh\nenv -0; printf '\\036'; printf '%s\\0' \"$@\"\n")
    tell.chmod(0o755)
    for spec in source.specs:
        template = group["leaderTemplate"] if spec.is_head and "leaderTemplate" in group else group["workerTemplate"]
        (container,) = template["spec"]["containers"]
        env = {e["name"]: e["value"].replace("$$(", "$(") for e in container["env"] if "value" in e}
        script = objects["ConfigMap"]["data"][f"{spec.node}.sh"]
        kept = [line for line in script.splitlines() if not line.startswith("cp ")]
        told = kept[-1].replace("exec ", f"exec {tell} ", 1)
        done = subprocess.run(["sh", "-c", "\n".join([*kept[:-1], told])], env=path | env, capture_output=True)
        assert done.returncode == 0, done.stderr
        before, _, after = done.stdout.decode().partition("\036")
        seen = dict(entry.split("=", 1) for entry in before.split("\0") if entry)
        assert {k: seen.get(k) for k in spec.env} == dict(spec.env)
        assert after.split("\0")[:-1] == [*(spec.entrypoint or ()), *spec.argv]


def test_process_runtime_needs_no_docker() -> None:
    """The samples cover both runtimes, so that the shell and systemd tests above do."""
    assert {spec.runtime for make in ALL.values() for spec in make().specs} == {Runtime.DOCKER, Runtime.PROCESS}
