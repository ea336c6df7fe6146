"""The testbed as a whole: made, copied up, reset between tests, taken down."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from testbed import caddy, images
from testbed.bundle import ContainerBundle
from testbed.daemon import Daemon
from testbed.keys import HostKeys
from testbed.node import ContainerNode
from testbed.rootfs import HOME, Builder, require_tools
from testbed.settings import ContainerSettings, NodeSpec
from testbed.shell import Lock, Say, TestbedError, narrator, together

NODE_IMAGE = "sparkwright-testbed-node"
LABEL = "sparkwright.testbed.key"


class Testbed:
    """Two nodes. Its holder holds its lock; `close` gives it back, and stops it unless `keep` was asked
    for."""

    __test__ = False

    def __init__(self, settings: ContainerSettings, say: Say) -> None:
        self.settings = settings
        self._say = say
        self._lock = Lock(settings.root / "lock")
        self._daemon = Daemon(settings)
        self._keys = HostKeys(settings)
        self._builder = Builder(settings, say)
        self._keep = settings.root / "keep"  # written by `testbed up`: a session that ends leaves it running
        self._engine_id = ""
        self._nodes: list[ContainerNode] = []

    @classmethod
    def ensure(cls, settings: ContainerSettings | None = None, say: Say | None = None) -> "Testbed":
        """Up, with the checkout's source on it: builds, starts and refreshes what is not as it should be."""
        testbed = cls(settings or ContainerSettings.from_environment(), say or narrator())
        try:
            testbed.up()
        except BaseException:
            testbed.close()
            raise
        return testbed

    @property
    def nodes(self) -> list[ContainerNode]:
        return self._nodes

    @property
    def ssh_config(self) -> Path:
        return self._keys.config

    @property
    def known_hosts(self) -> Path:
        return self._keys.known_hosts

    @property
    def engine_image(self) -> str:
        return images.ENGINE_IMAGE

    @property
    def engine_image_id(self) -> str:
        """The digest, the same on every node."""
        return self._engine_id

    def node(self, name: str) -> ContainerNode:
        return next(node for node in self._nodes if node.name == name)

    @contextlib.contextmanager
    def third(self) -> Iterator[ContainerNode]:
        """One more node for as long as it is open; its image store stays for the next time."""
        node = ContainerNode(self.settings.spare, self._daemon, self._keys)
        self._nodes = [*self._nodes, node]
        try:
            self._bring_up(node)
            node.reset()
            yield node
        finally:
            self._nodes = self._nodes[:-1]
            self._remove(node.spec.container)

    def build(self) -> None:
        if os.geteuid() != 0:
            raise TestbedError("the testbed needs root: it makes system containers")
        require_tools()
        self._lock.take(self._say)
        self._builder.build()

    def up(self) -> None:
        self.build()
        self._keys.make()
        self._daemon.start()
        self._daemon.make_networks()
        self._import_node_image()
        self._nodes = self.attach()
        together(self._bring_up, self._nodes)
        together(ContainerNode.reset, self._nodes)
        self.refresh()
        self._say(f"up: {', '.join(f'{node.name} {node.mgmt}' for node in self._nodes)}; ssh -F {self.ssh_config}")

    def attach(self) -> list[ContainerNode]:
        return [ContainerNode(spec, self._daemon, self._keys) for spec in self.settings.nodes]

    def refresh(self) -> None:
        """The checkout's source, to the nodes and into the engine's image."""
        source = images.source_layer()
        base = images.make_image(images.BASE_IMAGE, images.file_digest(self._builder.engine_tar))
        engine = images.make_image(images.ENGINE_IMAGE, *base.layers, hashlib.sha256(source).hexdigest())
        self._engine_id = engine.id

        def install(node: ContainerNode) -> None:
            caddy.install(node)
            note = f"/{HOME}/source.id"
            if node.sh(f"cat {note} 2>/dev/null", check=False) != engine.id:
                self._say(f"{node.name}: new source")
                node.sh(f"rm -rf /{HOME}/src")
                node.put_tar(source, "/")
                node.write(note, engine.id)
            node.load(base, engine, self._builder.engine_tar, source)

        together(install, self._nodes)

    def reset(self) -> None:
        """Resets the nodes between tests: nothing is left of the one before, whatever it did. Under two seconds unless
        a node is off; at once if no test has changed anything since."""
        if any(node.changed or node.state() != "running" for node in self._nodes):
            together(ContainerNode.reset, self._nodes)
            if any(node.image_id(images.ENGINE_IMAGE) != self._engine_id for node in self._nodes):
                self.refresh()
                self.mark(changed=False)

    def mark(self, *, changed: bool) -> None:
        """Note for the next `reset` whether nodes were changed past their own methods, as by a command over ssh."""
        for node in self._nodes:
            node.changed = changed

    def close(self) -> None:
        """The end of a session: stops everything, also what a killed session left, but not what `keep` holds up."""
        if self._lock.locked and not self._keep.exists():
            self.down()
        self._lock.release()

    def down(self) -> None:
        """Stops nodes and dockerd. Images, the nodes' image stores and the keys stay for the next time."""
        self._lock.take(self._say)
        if self._daemon.answers():
            together(self._remove, [spec.container for spec in (*self.settings.nodes, self.settings.spare)])
            self._daemon.remove_networks()
        self._daemon.stop()
        shutil.rmtree(self.settings.run, ignore_errors=True)
        self._keep.unlink(missing_ok=True)

    def leave_running(self) -> None:
        """Up until `down`, whichever session ends: for developers, who start many sessions."""
        self.up()
        self._keep.touch()

    def purge(self) -> None:
        self.down()
        for path in self.settings.root.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def status(self) -> str:
        if not self._daemon.answers():
            return "down"
        return "\n".join(f"{n.name} {n.state()} mgmt {n.mgmt} fabric {n.fabric}, {n.fabric_b}" for n in self.attach())

    # How a node comes to be

    @property
    def _image(self) -> str:
        return f"{NODE_IMAGE}:{self._builder.key}"

    def _import_node_image(self) -> None:
        present = self._daemon.docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", NODE_IMAGE).split()
        if self._image in present:
            return
        self._say("importing the node image")
        self._daemon.docker("import", str(self._builder.node_tar), self._image)
        for old in present:
            with contextlib.suppress(TestbedError):  # a container of it still runs: the next time, then
                self._daemon.docker("image", "rm", old)

    def _bring_up(self, node: ContainerNode) -> None:
        """A node whose definition has changed is made again; its image store is kept."""
        content = ContainerBundle(node.spec, self._keys).tar()
        key = hashlib.sha256(content + "\0".join([self._image, *self._create_words(node.spec)]).encode()).hexdigest()
        if self._label(node.spec.container) != key:
            self._say(f"{node.name}: creating")
            self._remove(node.spec.container)
            self._create(node, key, content)
        node.recover()
        node.wait_ready()

    def _label(self, container: str) -> str:
        try:
            return self._daemon.docker("inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', container)
        except TestbedError:
            return ""

    def _create(self, node: ContainerNode, key: str, content: bytes) -> None:
        spec = node.spec
        self._daemon.docker("create", "--label", f"{LABEL}={key}", *self._create_words(spec), self._image, "node-init")
        _, fabric, fabric_b = self.settings.networks
        self._daemon.docker("network", "connect", "--ip", spec.fabric, fabric.name, spec.container)
        self._daemon.docker("network", "connect", "--ip", spec.fabric_b, fabric_b.name, spec.container)
        archive = self.settings.root / f"{spec.name}.tar"
        archive.write_bytes(content)
        with archive.open("rb") as file:
            self._daemon.docker("cp", "--archive", "-", f"{spec.container}:/", stdin=file)
        archive.unlink()

    def _create_words(self, spec: NodeSpec) -> list[str]:
        """No `--privileged`: the machine may lack CAP_SYS_RESOURCE. The cgroup namespace is the node's own, so that
        freezing or limiting a node holds for its containers, and systemd in it never touches the machine's tree."""
        caps = ["--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--cgroupns", "private"]
        free = ["--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"]
        devices = ["--device-cgroup-rule", "c 231:* rwm", "--device-cgroup-rule", "c 10:58 rwm"]
        mounts = ["--volume", f"{spec.volume}:/var/lib/docker", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"]
        system = ["--env", "container=docker", "--stop-signal", "SIGRTMIN+3", "--sysctl", "net.ipv4.ip_forward=1"]
        network = ["--network", self.settings.networks[0].name, "--ip", spec.mgmt]
        for other in self.settings.nodes:
            network += ["--add-host", f"{other.name}:{other.mgmt}"]
        return ["--name", spec.container, "--hostname", spec.name, *caps, *free, *devices, *mounts, *system, *network]

    def _remove(self, container: str) -> None:
        with contextlib.suppress(TestbedError):  # there is none
            self._daemon.docker("rm", "--force", container)
