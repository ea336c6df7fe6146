"""Which engine answers there, by what it tells of itself: its version, its limits, the names of its figures."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sparkwright.app.tasks import together
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Probed
from sparkwright.engines.catalog import ENGINES, SEPARATE
from sparkwright.ports import Endpoint

# The engines as recipes call them. TensorRT-LLM has its figures at another path.
VOCABULARIES: Mapping[str, Mapping[str, str]] = {name: ENGINES[name].metric_names for name in SEPARATE}
_PAGES = ("/metrics", "/prometheus/metrics")
_SECONDS = 10.0
_BUILD = re.compile(r"b?\d[\w.+-]*")


async def identify(asker: Endpoint, root: str, key: Secret | None) -> Probed:
    """Engine, version, context and figures; what is not told stays empty. Never raises."""

    async def page(path: str) -> str:
        try:
            reply = await asker.get(root + path, key, _SECONDS)
        except NotReady:
            return ""
        return reply.body if reply.status == 200 else ""

    told, props, info, *figures = await together(page(p) for p in ("/version", "/props", "/server_info", *_PAGES))
    at, engine = _vocabulary(figures)
    props_tree, info_tree = _tree(props), _tree(info)
    engine = engine or next((n for n in SEPARATE if (own := ENGINES[n].traits.property) and own in props_tree), "")
    return Probed(
        url=root,
        model="",
        engine=engine,
        engine_version=_version(_tree(told), props_tree, info_tree),
        context=_context(props_tree, info_tree),
        metrics=_PAGES[at] if at >= 0 else "",
        names=VOCABULARIES[engine] if at >= 0 else {},
    )


def _vocabulary(figures: list[str]) -> tuple[int, str]:
    """Which page has which engine's names; (-1, '') when none has any."""
    for at, text in enumerate(figures):
        for engine, names in VOCABULARIES.items():
            if any(name in text for name in names.values()):
                return at, engine
    return -1, ""


def _tree(text: str) -> Mapping[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _version(told: Mapping[str, Any], props: Mapping[str, Any], info: Mapping[str, Any]) -> str:
    """Only what looks like one: a proxy may answer anything."""
    found = told.get("version") or props.get("build_info") or info.get("version") or ""
    return str(found) if _BUILD.match(str(found)) else ""


def _context(props: Mapping[str, Any], info: Mapping[str, Any]) -> int:
    """llama.cpp's is of one slot."""
    settings = props.get("default_generation_settings")
    found = (settings.get("n_ctx") if isinstance(settings, dict) else 0) or info.get("context_length") or 0
    return found if isinstance(found, int) else 0
