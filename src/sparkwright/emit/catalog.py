"""The forms in which a plan can be written out, by the name that `plan --emit` takes."""

from collections.abc import Callable, Mapping

from sparkwright.emit import FORM_NAMES
from sparkwright.emit.compose import compose
from sparkwright.emit.k8s import k8s
from sparkwright.emit.shell import shell
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.emit.systemd import systemd

FORMS: Mapping[str, Callable[[DeploymentSource], tuple[EmittedFile, ...]]] = dict(
    zip(FORM_NAMES, (compose, shell, k8s, systemd), strict=True)
)
