"""Docker has no NVIDIA runtime.

Detects: containers that Docker, containerd or podman refuses because it knows no GPU runtime.
Why: --gpus and --runtime=nvidia need nvidia-container-toolkit, and Docker must have been told of it and restarted;
  CDI names need a generated specification.
Evidence: the daemon's error.
Remedy: install the toolkit, configure, restart Docker.
References: gb10.md A5 (nvidia runtime), E26;
  https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NVIDIA container toolkit not installed or not configured"
CAUSE = "nvidia-container-toolkit-missing"
SIGNS = (
    line(r"could not select device driver", CERTAIN),
    line(r"unknown (or invalid )?runtime (name|specified):? ?\"?nvidia", CERTAIN),
    line(
        r"nvidia-container-(runtime|runtime-hook|toolkit|cli)\W{0,3}.{0,20}(not found|no such file|not installed)",
        CERTAIN,
    ),
    line(r"no runtime for \"?nvidia\"? is configured|runtimes?\W{1,4}nvidia\W.{0,30}not found", CERTAIN),
    line(r"unresolvable cdi devices?|failed to inject cdi devices", LIKELY),
    line(r"nvidia-container-cli: initialization error", POSSIBLE, unless=r"driver not loaded|driver/library"),
    near(
        r"nvidia[- ]container[- ](toolkit|runtime)|nvidia runtime|nvidia-docker2?",
        r"not installed|missing|not (configured|registered)|has to be installed",
        sure=LIKELY,
        within=1,
    ),
    line(r"NVIDIA Driver was not detected", POSSIBLE),
    line(
        r"(?:--gpus all|GPU containers?|docker run)\b.{0,60}(?:fails?|until|unless|before"
        r"|needs?).{0,40}(?:nvidia-ctk|container[- ]toolkit)|(?:nvidia-ctk runtime configure"
        r"|installing (?:the )?nvidia-container-toolkit).{0,60}(?:fix\w*|solv\w*|help\w*|works|needed"
        r"|required)",
        LIKELY,
    ),
)
FIX = (
    "sudo apt-get install -y nvidia-container-toolkit",
    "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
    "for CDI names: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
)
EXPLAINS = (
    "no-gpu-visible-in-container",
    "libcuda-not-in-container",
)
