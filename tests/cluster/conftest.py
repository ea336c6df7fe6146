"""The two-node testbed for the tests here: see tools/testbed. One session at a time; others wait for its lock."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import cable
from cluster.drive import RUNTIMES, CommandDriver
from testbed import ContainerNode, Testbed, TestbedError
from testbed.rootfs import missing_tools


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: runs on the two-node testbed (root, mmdebstrap, dockerd)")
    config.addinivalue_line("markers", "both_runtimes: `make test` runs it with containers and with processes")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started by a shell in the background (`make test &`):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests start would ignore Ctrl-C, too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tries by turns with containers and with processes, unless all is asked for: the other row is `full`."""
    here = Path(__file__).parent
    groups: dict[str, list[pytest.Item]] = {}
    for item in (item for item in items if here in item.path.parents):
        item.add_marker(pytest.mark.cluster)
        row = dict(getattr(getattr(item, "callspec", None), "params", {}))
        if row.pop("runtime", None) in RUNTIMES and not item.get_closest_marker("both_runtimes"):
            groups.setdefault(f"{item.nodeid.partition('[')[0]} {sorted(row.items(), key=str)}", []).append(item)
    for number, several in enumerate(rows for rows in groups.values() if len(rows) > 1):
        for other in several[: number % len(several)] + several[number % len(several) + 1 :]:
            other.add_marker(pytest.mark.full)


def obstacle() -> str:
    """The reason why there can be no testbed here; empty if there can."""
    if os.geteuid() != 0:
        return "the testbed makes system containers: it needs root"
    if missing := missing_tools():
        return f"the testbed needs {', '.join(missing)} (as root, `make test` installs what is missing)"
    return ""


@pytest.fixture(scope="session")
def testbed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """Built where it is not, started where it is not, with this checkout's source; stopped after, unless kept up."""
    if reason := obstacle():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # the first time takes minutes: say what they are spent on
        testbed = Testbed.ensure()
    yield testbed
    testbed.close()


@pytest.fixture(autouse=True)
def fresh_nodes(testbed: Testbed) -> None:
    """Resets the nodes before each test, so that the remains of a failed one can still be inspected when it was the
    last. Nodes that no test has changed since stay as they are."""
    testbed.reset()


@pytest.fixture
def testbed_nodes(testbed: Testbed) -> list[ContainerNode]:
    return testbed.nodes


@pytest.fixture
def ssh_config(testbed: Testbed) -> Path:
    """The file for `ssh -F`: names, keys and known host keys of the nodes, which its user may change."""
    testbed.mark(changed=True)
    return testbed.ssh_config


@pytest.fixture
def driver(testbed: Testbed, tmp_path: Path) -> Iterator[CommandDriver]:
    """The real `sparkwright` on the testbed's nodes, with a home of its own."""
    made = CommandDriver(tmp_path, testbed)
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that fails shows what its nodes looked like."""
    report = yield
    testbed = getattr(item, "funcargs", {}).get("testbed")
    if report.when == "call" and report.failed and isinstance(testbed, Testbed):
        for node in testbed.nodes:
            report.sections.append((f"state of {node.name}", remains(node)))
    return report


def remains(node: ContainerNode) -> str:
    try:
        return node.describe()
    except (TestbedError, OSError) as error:
        return f"{node.state()}: {error}"


@pytest.fixture
def cabled_driver(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[CommandDriver]:
    try:
        cable.plug_cables(testbed_nodes)
        yield driver
    finally:
        cable.unplug(testbed_nodes)
