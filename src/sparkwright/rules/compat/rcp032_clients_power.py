"""A setting by which a client gets code or files.

Detects: enable-custom-logit-processor, enable-prompt-embeds, allowed-local-media-path.
Why: they act on what a request holds, on the same routes as every chat: the gateway cannot tell such a request from
another. SGLang runs dill.loads over a custom logit processor, which is code in the engine's process.
Evidence: the setting, and serving.expose.
Remedy: take it out, or keep the endpoint to clients that you trust (expose: loopback or fabric).
References: docs/security.md; https://github.com/vllm-project/vllm/security/advisories
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.power import powers
from sparkwright.domain.recipe import Expose
from sparkwright.rules.rule import Context

CODE = "RCP032"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a setting by which clients get code or files"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and power.clients:
            exposed = recipe.serving.expose is Expose.ALL
            yield Finding(
                CODE,
                Severity.BLOCK if exposed else SEVERITY,
                power.setting,
                f"{power.setting.partition('.')[2]} gives clients code or files",
                f"it {power.gives}; serving.expose: {recipe.serving.expose.value}",
                "a key is enough for it: the gateway cannot tell such a request from another",
                "take it out, or set serving.expose to loopback or fabric and give keys to those whom you trust",
            )
