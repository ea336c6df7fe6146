"""docs/architecture.svg: who runs where, and who talks to whom. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

WIDTH, HEIGHT = 960, 400
STEPS = (
    "facts of all nodes",
    "plan: memory, speed",
    "checks, with fixes",
    "weights and image",
    "launch, real answer",
)
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
  .title { font-weight: 600 } .small { font-size: 12px; fill: #57606a }
  .machine { fill: #f6f8fa; stroke: #8c959f; rx: 10 } .part { fill: #ffffff; stroke: #57606a; rx: 6 }
  .ours { fill: #ddf4ff; stroke: #0969da; rx: 6 } path { stroke: #57606a; stroke-width: 1.5; fill: none }
  .fast { stroke: #0969da; stroke-width: 3 } .dashed { stroke-dasharray: 5 4 }"""
HEAD = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
)
TIP = f'{HEAD}<path d="M0 0 8 4 0 8z" style="fill:#57606a;stroke:none"/></marker>'


def picture() -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    title = "<title>sparkwright: a laptop, a head node with supervisor and gateway, and the ranks of the engine</title>"
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{title}\n<style>{STYLE}\n</style>'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join([start, f"<defs>{TIP}</defs>", ground, *machines(), *picture_parts(), *arrows(), "</svg>", ""])


def machines() -> Iterator[str]:
    yield from draw_box((20, 70, 230, 300), "machine", "your laptop, or a node")
    yield from draw_box((380, 70, 270, 300), "machine", "spark-1 (head)")
    yield from draw_box((720, 70, 220, 300), "machine", "spark-2")


def picture_parts() -> Iterator[str]:
    yield from draw_box((40, 110, 190, 240), "ours", "sparkwright", "recipe + cluster file")
    steps = (
        "facts of all nodes",
        "plan: memory, speed",
        "checks, with fixes",
        "weights and image",
        "launch, real answer",
    )
    for n, step in enumerate(steps, 1):
        yield text_at(54, 180 + 30 * n, f"{n}. {step}")
    yield from draw_box((400, 110, 230, 56), "ours", "gateway", "TLS, API keys, /v1 only (Caddy)")
    yield from draw_box((400, 196, 230, 66), "ours", "supervisor", "canary, relaunch, incidents")
    yield from draw_box((400, 292, 230, 58), "part", "rank 0", "vLLM, SGLang, TRT-LLM, llama.cpp")
    yield from draw_box((740, 292, 180, 58), "part", "rank 1", "the same engine")
    yield text_at(516, 24, "clients", "title")


def arrows() -> Iterator[str]:
    yield draw_line("M540 32 V108", "https, /v1", 548, 60)
    yield draw_line("M250 216 H378", "ssh", 300, 208)
    yield draw_line("M250 330 H290 V385 H830 V371", "ssh", 300, 379)
    yield draw_line("M420 194 V169", "state", 428, 186, "dashed")
    yield draw_line("M632 138 H641 V312 H633", "", 0, 0)
    yield draw_line("M500 264 V290", "asks for real tokens", 508, 282, "dashed")
    yield draw_line("M632 229 H830 V290", "watches by ssh", 742, 221, "dashed")
    yield f'<path class="fast" d="M632 324 H738"/>{text_at(662, 342, "RDMA", "small")}'


def draw_box(place: tuple[int, int, int, int], kind: str, title: str, text: str = "") -> Iterator[str]:
    """place: x, y, width, height"""
    x, y, width, height = place
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>'
    yield text_at(x + 14, y + 24, title, "title")
    if text:
        yield text_at(x + 14, y + 43, text, "small")


def draw_line(path: str, label: str, x: int, y: int, kind: str = "") -> str:
    return f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>' + (
        text_at(x, y, label, "small") if label else ""
    )


def text_at(x: int, y: int, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
