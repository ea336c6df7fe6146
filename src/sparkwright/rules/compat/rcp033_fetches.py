"""A multimodal engine that fetches what clients name.

Detects: a model with an encoder for images or sound on vLLM without allowed-media-domains, or on SGLang.
Why: image_url, video_url and audio_url of a request are fetched by the engine, from the head node's own network:
loopback, the fabric, the LAN. SGLang also opens `file://` and plain paths of the head node, and no option forbids it.
Evidence: the engine and its flags.
Remedy: vLLM: flags.allowed-media-domains with the hosts that clients need, or language-model-only; SGLang: keep the
endpoint to clients that you trust.
References: docs/security.md; https://docs.vllm.ai/en/latest/usage/security/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Expose, Recipe
from sparkwright.rules.compat.reading import VLLM, flag, on, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP033"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a multimodal engine fetches what clients name"


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = context.recipe, shape_of(context)
    if recipe is None or shape is None or not shape.senses or recipe.model.simulated:
        return
    if recipe.engine.name == "sglang" and flag(recipe, "enable-multimodal") != "false":
        exposed = recipe.serving.expose is Expose.ALL
        yield _finding(
            Severity.OVERRIDE if exposed else SEVERITY,
            "image_url may also be file:///... or a path: clients read files of the head node",
            "keep the endpoint to clients that you trust (expose: loopback or fabric), or serve the model with vLLM",
        )
    if recipe.engine.name in VLLM and not _closed(recipe):
        yield _finding(
            Severity.INFO if recipe.serving.expose is Expose.LOOPBACK else SEVERITY,
            "flags.allowed-media-domains is not set: any host that the head node can reach",
            "flags.allowed-media-domains: [HOST, ...], or flags.language-model-only: true",
        )


def _closed(recipe: Recipe) -> bool:
    return bool(flag(recipe, "allowed-media-domains")) or on(recipe, "language-model-only")


def _finding(severity: Severity, evidence: str, remedy: str) -> Finding:
    return Finding(
        CODE,
        severity,
        "model",
        "the engine fetches what clients name",
        evidence,
        "URLs in a request are fetched from the head node's own network: loopback, the fabric, the LAN",
        remedy,
    )
