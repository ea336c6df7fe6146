"""A setting that runs code from elsewhere, or opens the engine to other users.

Detects: trust-remote-code, middleware, worker-extension-cls, kv-transfer-config, LD_PRELOAD, PYTHONPATH and other
variables of loaders, VLLM_SERVER_DEV_MODE, VLLM_ALLOW_RUNTIME_LORA_UPDATING, VLLM_ALLOW_INSECURE_SERIALIZATION.
Why: a recipe is code. What these point to runs with the rights of the ssh user's containers or processes, on each
node; the last three give rights of the recipe's author to others on the head node, or to clients whose route is opened.
Evidence: the setting.
Remedy: take it out unless you know what it is for; pin model.revision where the model brings code.
References: docs/security.md; https://docs.vllm.ai/en/latest/usage/security/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.power import Power, powers
from sparkwright.domain.recipe import Expose, Recipe
from sparkwright.rules.rule import Context

CODE = "RCP031"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a setting that gives power away"
_ADAPTERS = "env.VLLM_ALLOW_RUNTIME_LORA_UPDATING"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and not power.clients:
            yield Finding(
                CODE,
                _severity(recipe, power),
                power.setting,
                f"{power.setting.partition('.')[2]} gives power away",
                f"it {power.gives}",
                "a recipe is code: what it sets runs on your nodes with your rights",
                "take it out unless you know what it is for; with trust-remote-code, pin model.revision to a commit",
            )


def _severity(recipe: Recipe, power: Power) -> Severity:
    """Most models of today bring code; adapters of any client's choice are code and files for all."""
    if power.setting == "flags.trust-remote-code":
        return Severity.INFO
    opened = any("lora" in route for route in recipe.serving.door.routes)
    everybody = power.setting == _ADAPTERS and opened and recipe.serving.expose is Expose.ALL
    return Severity.BLOCK if everybody else SEVERITY
