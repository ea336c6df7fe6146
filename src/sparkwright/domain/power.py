"""Settings of a recipe that hand power over: to the author of what they point to, or to every client."""

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.domain.values import dataclass

_OFF = ("", "0", "false", "no", "off", "none", "null")
_LOADS = "loads code from where it points"


@dataclass(frozen=True, slots=True)
class Power:
    """gives: what the setting does, as the end of a sentence. clients: they get code or files by it."""

    setting: str
    gives: str
    clients: bool = False


_VARIABLES = {
    **dict.fromkeys(("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH"), _LOADS),
    **dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "BASH_ENV"), _LOADS),
    "VLLM_SERVER_DEV_MODE": "opens routes of vLLM that steer the engine to every user of the head node",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "lets any client of the route load adapters from any folder or hub",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "makes the engine unpickle what it is sent, which runs code",
}
_FLAGS = {
    "trust-remote-code": ("runs code that comes with the model's files", False),
    "middleware": (_LOADS, False),
    "worker-extension-cls": (_LOADS, False),
    "kv-transfer-config": ("lets a request's kv_transfer_params name hosts and blocks of other requests", False),
    "enable-custom-logit-processor": ("runs code that clients send (SGLang: dill.loads of the request)", True),
    "enable-prompt-embeds": ("makes the engine load tensors that clients send, which has been a way to run code", True),
    "allowed-local-media-path": ("lets clients read the files below that folder", True),
}


def powers(env: Mapping[str, Any], flags: Mapping[str, Any]) -> Iterator[Power]:
    """Those that are switched on."""
    for name, gives in _VARIABLES.items():
        if _on(env.get(name)):
            yield Power(f"env.{name}", gives)
    given = {str(name).lstrip("-").replace("_", "-"): value for name, value in flags.items()}
    for name, (gives, clients) in _FLAGS.items():
        if _on(given.get(name)):
            yield Power(f"flags.{name}", gives, clients)


def _on(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in _OFF
