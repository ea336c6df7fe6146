"""Several groups of nodes in `plan --emit`: what Kubernetes makes of them, and what the other forms say."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import Mount
from sparkwright.emit.catalog import FORMS, emit_groups
from sparkwright.emit.source import DeploymentSource
from unit.emit.samples import KEY, deepseek, groups, one_node, simulator, with_files

# As safe_load reads; with libyaml where PyYAML has it.
read_all = partial(yaml.load_all, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def manifest(model: str, sources: list[DeploymentSource]) -> list[dict[str, Any]]:
    (file,) = emit_groups("k8s", model, sources)
    return list(read_all(file.text))


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entry for entry in objects if entry["kind"] == kind]


def nodes_of(template: dict[str, Any]) -> list[str]:
    required = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found: list[str] = required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
    return found


def test_groups_of_one_node_are_replicas_of_one_set() -> None:
    """Each pod runs its own node's script, so that any pod may be on any of the nodes."""
    objects = manifest("gpt-oss-20b", groups(one_node(), 3, "0.0.0.0"))
    (one,) = of_kind(objects, "LeaderWorkerSet")
    assert (one["metadata"]["name"], one["spec"]["replicas"]) == ("gpt-oss-20b", 3)
    assert one["spec"]["leaderWorkerTemplate"]["size"] == 1
    template = one["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    assert nodes_of(template) == ["spark-1", "spark-2", "spark-3"] and "leaderTemplate" not in one["spec"]
    (scripts,) = of_kind(objects, "ConfigMap")
    assert sorted(scripts["data"]) == ["spark-1.sh", "spark-2.sh", "spark-3.sh"]
    (service,) = of_kind(objects, "Service")
    assert service["spec"]["selector"].items() > template["metadata"]["labels"].items()


def test_groups_of_several_nodes_are_a_set_each() -> None:
    """Guards a worker that would look for its head in another group: the controller pairs whom it likes."""
    sources = groups(deepseek())
    objects = manifest("deepseek-v4-flash", sources)
    sets = of_kind(objects, "LeaderWorkerSet")
    assert [one["metadata"]["name"] for one in sets] == ["deepseek-v4-flash-r1", "deepseek-v4-flash-r2"]
    for number, one in enumerate(sets):
        group = one["spec"]["leaderWorkerTemplate"]
        assert (one["spec"]["replicas"], group["size"]) == (1, 2)
        assert nodes_of(group["leaderTemplate"]) == [f"spark-{2 * number + 1}"]
        assert nodes_of(group["workerTemplate"]) == [f"spark-{2 * number + 2}"]
    scripts = of_kind(objects, "ConfigMap")
    for source, found in zip(sources, scripts, strict=True):
        own, other = ("192.168.100.", "192.168.101.") if source is sources[0] else ("192.168.101.", "192.168.100.")
        assert all(own in text and other not in text for text in found["data"].values())
    (endpoints,) = of_kind(objects, "EndpointSlice")
    assert [one["addresses"] for one in endpoints["endpoints"]] == [["192.168.100.10"], ["192.168.101.10"]]


def test_no_two_groups_share_a_node() -> None:
    """The pods of all sets keep apart, by the label that they have in common."""
    for one in of_kind(manifest("deepseek", groups(deepseek())), "LeaderWorkerSet"):
        for key in ("leaderTemplate", "workerTemplate"):
            template = one["spec"]["leaderWorkerTemplate"][key]
            (apart,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert apart["labelSelector"]["matchLabels"] == template["metadata"]["labels"]


def test_nodes_with_other_folders_are_a_set_each() -> None:
    """One template has one list of folders."""
    first, second = groups(one_node())
    spec = second.specs[0]
    elsewhere = replace(spec, mounts=(Mount("/elsewhere", spec.mounts[0].container), *spec.mounts[1:]))
    second = replace(second, plan=replace(second.plan, specs=(elsewhere,)))
    sets = of_kind(manifest("gpt-oss-20b", [first, second]), "LeaderWorkerSet")
    assert [one["metadata"]["name"] for one in sets] == ["gpt-oss-20b-r1", "gpt-oss-20b-r2"]


def test_a_group_that_loads_gets_no_request() -> None:
    """Only heads are asked, and only where a Service chooses among pods; a single group is as it was."""
    several = of_kind(manifest("d", groups(deepseek(), bind="0.0.0.0")), "LeaderWorkerSet")
    for group in (one["spec"]["leaderWorkerTemplate"] for one in several):
        (head,), (worker,) = (group[key]["spec"]["containers"] for key in ("leaderTemplate", "workerTemplate"))
        assert head["readinessProbe"]["httpGet"]["path"] == "/health" and "readinessProbe" not in worker
        assert "livenessProbe" not in head
    for closed in (groups(deepseek()), groups(deepseek(), bind="127.0.0.1"), [deepseek()]):
        (file,) = emit_groups("k8s", "d", closed)
        assert "readinessProbe" not in file.text


def test_the_file_says_what_a_service_does_not_do() -> None:
    (file,) = emit_groups("k8s", "d", groups(deepseek()))
    assert "2 groups of deepseek-v4-flash, a LeaderWorkerSet each" in file.text
    assert "knows neither prompts nor load" in file.text and "llm-d" in file.text
    (file,) = emit_groups("k8s", "d", groups(deepseek(), bind="127.0.0.1"))
    assert "there is no Service" in file.text and "kind: Service\n" not in file.text


def test_a_long_name_leaves_room_for_the_number() -> None:
    sets = of_kind(manifest("x" * 63, groups(deepseek(), 12)), "LeaderWorkerSet")
    names = [one["metadata"]["name"] for one in sets]
    assert (names[0], names[11], len(set(names))) == ("x" * 47 + "-r1", "x" * 46 + "-r12", 12)


@pytest.mark.parametrize("form", FORMS)
def test_no_group_holds_a_secret_or_overwrites_another(form: str) -> None:
    files = emit_groups(form, "deepseek-v4-flash", groups(with_files()))
    assert not [file.path for file in files if KEY in file.text]
    paths = [file.path for file in files]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("form", ["compose", "shell", "systemd"])
def test_other_forms_have_a_folder_for_each_group_and_no_router(form: str) -> None:
    """Each folder has the files of its group alone; the overview has the addresses, and says that nothing routes."""
    sources = groups(deepseek())
    first, *files = emit_groups(form, "deepseek-v4-flash", sources)
    assert first.path == "README.md" and "Nothing here routes" in first.text
    assert "http://192.168.100.10:8000 on spark-1" in first.text and "on spark-3" in first.text
    for source in sources:
        own = {file.path.removeprefix(f"{source.name}/"): file for file in files if file.path.startswith(source.name)}
        assert {path: file.text for path, file in own.items()} == {f.path: f.text for f in FORMS[form](source)}
    assert "listen on 127.0.0.1" not in first.text
    closed = emit_groups(form, "d", groups(deepseek(), bind="127.0.0.1"))[0].text
    assert "listen on 127.0.0.1" in closed and "serving.expose" in closed


def test_nodes_that_are_one_machine_are_refused() -> None:
    first, second = groups(simulator("docker", 1))
    with pytest.raises(UsageError, match="listen on different ports"):
        emit_groups("k8s", "simulator", [first, replace(second, plan=replace(second.plan, port=second.plan.port + 1))])
