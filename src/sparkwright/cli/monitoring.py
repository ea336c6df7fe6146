"""`sparkwright monitoring`."""

from importlib.resources import files
from pathlib import Path

import click

from sparkwright.cli import options as shared
from sparkwright.cli.kinds import renamed_option
from sparkwright.domain.errors import UsageError

FILES = ("prometheus.yaml", "alerts.yaml", "dashboard.json")
NEXT = """next:
  prometheus.yaml   what to add to Prometheus' file, and where the figures are
  alerts.yaml       next to it, named in rule_files
  dashboard.json    Grafana: Dashboards, New, Import"""


@click.command()
@renamed_option(
    "--folder", "out", was="--out", default="monitoring", show_default=True, metavar="DIR", help="Folder to write to."
)
@click.option("--overwrite", is_flag=True, help="Overwrite files that exist and differ.")
@shared.json_option
def monitoring(out: str, overwrite: bool, as_json: bool) -> None:
    """Write a Grafana dashboard, alert rules and a scrape configuration for Prometheus.

    The figures come from each supervised deployment's head node.

    \b
    Examples:
      sparkwright monitoring --folder ./monitoring
    """
    folder = Path(out).expanduser()
    texts = {name: (files("sparkwright.cli") / "dashboards" / name).read_text(encoding="utf-8") for name in FILES}
    changed = [name for name, text in texts.items() if _differs(folder / name, text)]
    if changed and not overwrite:
        raise UsageError(f"{folder}: {', '.join(changed)} there and different", "another --folder, or --overwrite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}", "name another folder with --folder") from None
    text = "\n".join([*(f"wrote {folder / name}" for name in FILES), NEXT])
    shared.answer(as_json, {"files": [str(folder / name) for name in FILES]}, text)


def _differs(path: Path, text: str) -> bool:
    """True if writing would lose somebody's text."""
    try:
        return path.read_text(encoding="utf-8") != text
    except OSError:
        return path.exists()
