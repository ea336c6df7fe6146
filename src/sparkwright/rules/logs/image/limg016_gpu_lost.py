"""A running container loses its GPU.

Detects: NVML that fails with an unknown error in a container that worked before.
Why: with the systemd cgroup driver, `systemctl daemon-reload` rewrites device rules, and devices that the NVIDIA
  hook added are gone for that container.
Evidence: NVML's `Unknown Error`, while nvidia-smi works on the host.
Remedy: start the container again; use CDI so that the devices are known to the runtime.
References: https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LIMG016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "container lost its GPU access while running"
CAUSE = "container-loses-gpu-access"
SIGNS = (line(r"failed to initialize nvml: unknown error", LIKELY),)
FIX = (
    "docker restart {container}; then run it by CDI: docker run --device nvidia.com/gpu=all",
    "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
)
EXPLAINS = ()
