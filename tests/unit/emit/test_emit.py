"""The output of `plan --emit`, without any program: nothing secret, nothing lost, refusals as text."""

import re
import shlex
from dataclasses import replace
from functools import partial

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import Mount
from sparkwright.emit.catalog import FORMS
from sparkwright.emit.k8s import RDMA, emit_k8s
from sparkwright.emit.source import DeploymentSource, merge_commands
from unit.emit.samples import KEY, awkward, deepseek, simulator, with_files

# As safe_load reads; with libyaml where PyYAML has it.
read_all = partial(yaml.load_all, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

WORDS = st.lists(st.sampled_from(["--a", "--b", "-c", "x", "it's", "$", "", "serve"]), max_size=8)


def changed(source: DeploymentSource, **more: object) -> DeploymentSource:
    return replace(source, plan=replace(source.plan, **more))


@pytest.mark.parametrize("form", FORMS)
def test_no_form_holds_a_secret(form: str) -> None:
    """Neither an API key nor a secret file's content is in any file; a file that waits for one is 0600."""
    files = FORMS[form](with_files())
    assert files and not [file.path for file in files if KEY in file.text]
    assert all(file.mode == 0o600 for file in files if file.path.endswith(("secrets.env", "files/key")))


@pytest.mark.parametrize("form", FORMS)
def test_each_file_once_and_inside_the_folder(form: str) -> None:
    """Paths are relative, never climb and never collide."""
    paths = [file.path for file in FORMS[form](awkward())]
    assert len(set(paths)) == len(paths)
    assert not [path for path in paths if path.startswith("/") or ".." in path.split("/")]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_one_text_gives_back_every_ranks_words(commands: list[list[str]]) -> None:
    """The common text, filled with a rank's values, is that rank's line again, whatever the command lines are."""
    varied = merge_commands(commands)
    if varied is None:
        return
    for words, values in zip(commands, varied.values, strict=True):
        text = varied.text
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", value)
        assert shlex.split(text) == words


def test_no_argument_is_taken_for_the_folder() -> None:
    """Guards an argument with the very text of a placeholder: it comes out as it went in."""
    one = with_files()
    specs = tuple(replace(spec, argv=(*spec.argv, "--note", "a@HERE@b")) for spec in one.plan.specs)
    files = FORMS["shell"](replace(one, plan=replace(one.plan, specs=specs)))
    (text,) = [file.text for file in files if file.path.endswith("spark-1/rank.sh")]
    assert "a@HERE@b" in text and "\0" not in text


def test_what_cannot_be_one_text_is_none() -> None:
    """Flags in another order, other programs, quotes that Compose's versions read differently: a text each."""
    assert merge_commands([["--a", "--b"], ["--b", "--a"]]) is None
    assert merge_commands([["head", "--a"], ["worker", "--a"]]) is None
    assert merge_commands([["--a", "it's 0"], ["--a", "it's 1"]]) is None


def test_a_node_differs_only_by_its_env() -> None:
    """Rank, headless and what the node's facts report are in .env, the rest is one compose.yaml."""
    files = {file.path: file.text for file in FORMS["compose"](deepseek())}
    assert files["spark-1/compose.yaml"] == files["spark-2/compose.yaml"]
    assert "NODE_RANK=1\n" in files["spark-2/.env"] and "HEADLESS=--headless\n" in files["spark-2/.env"]
    assert "HEADLESS=\n" in files["spark-1/.env"] and "MASTER_ADDR=192.168.100.10\n" in files["spark-2/.env"]
    assert "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1\n" in files["spark-2/.env"]
    assert "spark-2, then spark-1 (head)" in files["README.md"]


@pytest.mark.parametrize("form", ["compose", "k8s"])
def test_containers_are_needed(form: str) -> None:
    """A plan of the process runtime is refused by the forms that start containers, with the forms that do not."""
    with pytest.raises(UsageError, match="runtime is process") as caught:
        FORMS[form](simulator())
    assert "--emit shell" in caught.value.hint


def test_one_template_for_all_workers() -> None:
    """Kubernetes: workers with folders at different places are refused by name; two workers alike are not."""
    source = deepseek()
    head, worker = source.specs
    third = replace(worker, rank=2, node="spark-3")
    assert emit_k8s(changed(source, specs=(head, worker, third)))
    other = replace(third, mounts=(Mount("/elsewhere", "/models/hub"), *worker.mounts[1:]))
    with pytest.raises(UsageError, match="spark-3 mounts /elsewhere as /models/hub, spark-2 /") as caught:
        emit_k8s(changed(source, specs=(head, worker, other)))
    assert "Mount(" not in caught.value.message
    with pytest.raises(UsageError, match=f"spark-3 mounts nothing more, spark-2 {worker.mounts[-1].host} as "):
        emit_k8s(changed(source, specs=(head, worker, replace(third, mounts=worker.mounts[:-1]))))
    with pytest.raises(UsageError, match="spark-3 has image acme/other:1, spark-2 has "):
        emit_k8s(changed(source, specs=(head, worker, replace(third, image="acme/other:1"))))
    with pytest.raises(UsageError, match="the image's own entry point"):
        emit_k8s(changed(source, specs=(replace(head, entrypoint=None), worker)))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("Qwen3.8-Flash", "qwen3-8-flash"),
        ("mine_", "mine"),
        ("3-nodes", "d-3-nodes"),
        ("x" * 63, "x" * 50),
        ("x" * 49 + "-y" * 7, "x" * 49),
    ],
    ids=["capitals", "end", "digit", "long", "cut at a dash"],
)
def test_names_are_labels(given: str, wanted: str) -> None:
    """Capitals keep their letters; no name ends in a dash, begins with a digit or leaves no room for what LWS adds."""
    (file,) = emit_k8s(changed(deepseek(), deployment=given, bind="0.0.0.0"))
    names = [entry["metadata"]["name"] for entry in read_all(file.text)]
    assert names == [f"{wanted}-plan", wanted, f"{wanted}-api"]
    assert all(re.fullmatch("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)


@pytest.mark.parametrize(
    ("bind", "kinds"),
    [("127.0.0.1", []), ("0.0.0.0", ["Service"]), ("192.168.100.10", ["Service", "EndpointSlice"])],
)
def test_the_service_leads_where_the_head_listens(bind: str, kinds: list[str]) -> None:
    """No Service promises an API that only loopback has; on the fabric it leads to that address."""
    (file,) = emit_k8s(changed(deepseek(), bind=bind))
    objects = list(read_all(file.text))
    assert [entry["kind"] for entry in objects] == ["ConfigMap", "LeaderWorkerSet", *kinds]
    assert ("port-forward" in file.text) is (kinds == [])


def test_devices_are_asked_for_as_the_plan_does() -> None:
    """A rank with a GPU and RDMA asks for both resources and may pin memory; a simulated one asks for nothing."""
    group = list(read_all(emit_k8s(deepseek())[0].text))[1]["spec"]["leaderWorkerTemplate"]
    (real,) = group["workerTemplate"]["spec"]["containers"]
    assert real["resources"]["limits"] == {"nvidia.com/gpu": 1, RDMA: 1}
    assert real["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    group = list(read_all(emit_k8s(simulator("docker"))[0].text))[1]["spec"]["leaderWorkerTemplate"]
    (simulated,) = group["leaderTemplate"]["spec"]["containers"]
    assert "resources" not in simulated and "securityContext" not in simulated


def test_no_form_restarts_a_single_rank() -> None:
    """A rank that comes back alone meets ranks that have given it up: no form restores one automatically."""
    units = [file.text for file in FORMS["systemd"](deepseek()) if file.path.endswith(".service")]
    assert all("\nRestart=no\n" in text for text in units) and len(units) == 2
    assert "restart: 'no'" in FORMS["compose"](deepseek())[1].text
    assert "RecreateGroupOnPodRestart" in emit_k8s(deepseek())[0].text
