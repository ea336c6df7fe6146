"""Build the documentation as a site: `make site`, into build/site. `--serve` shows it on 127.0.0.1.

The pages are docs/, the Markdown files of the root, and the pages of findings, which are not in git.
Zensical, from the dependency group `site`, turns them into HTML. A link to a page or a heading that does not exist
fails the build.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import docs_rules

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts" / "setup"))

import bootstrap  # noqa: E402

PAGES, SITE = ROOT / "build" / "site-pages", ROOT / "build" / "site"
MOVED = {  # page in the repository -> page of the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SUPPORT.md": "support.md",
    "SECURITY.md": "report-a-vulnerability.md",
    "docs/STATUS.md": "status.md",
    "docs/README.md": "guides/README.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)


def main(arguments: Sequence[str]) -> int:
    if importlib.util.find_spec("zensical") is None:
        bootstrap.install_group("site")
    shutil.rmtree(PAGES, ignore_errors=True)
    write_pages()
    words = [sys.executable, "-m", "zensical", "serve" if "--serve" in arguments else "build", "-f", "zensical.toml"]
    if code := subprocess.run(words, cwd=ROOT).returncode:
        return code
    broken = broken_links(SITE)
    for line in broken:
        print(f"site: {line}", file=sys.stderr)
    print(f"site: {len(list(SITE.rglob('*.html')))} pages in build/site, {len(broken)} broken links")
    return int(bool(broken))


def write_pages() -> None:
    """Copy all pages and pictures; links between them lead to where the site has them."""
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix != ".md":
            target = PAGES / path.relative_to(ROOT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    pages = [ROOT / name for name in MOVED if "/" not in name] + sorted((ROOT / "docs").rglob("*.md"))
    for page in pages:
        target = PAGES / place_of(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_site_links(page.read_text(), page))
    docs_rules.main([str(PAGES / "rules")])


def place_of(page: Path) -> str:
    name = page.relative_to(ROOT).as_posix()
    return MOVED.get(name, name.removeprefix("docs/"))


def with_site_links(text: str, page: Path) -> str:
    """Links to files that are no pages (source code, licences) become their names: the site does not have them."""
    depth = "../" * place_of(page).count("/")

    def moved(found: re.Match[str]) -> str:
        if urlsplit(found[2]).scheme:
            return found[0]
        target = (page.parent / unquote(found[2])).resolve()
        is_page = target.suffix in (".md", ".svg", ".webp", ".png") or target.is_dir()
        is_page = is_page or (target.suffix == ".json" and target.is_relative_to(ROOT / "docs"))
        if not target.is_relative_to(ROOT) or not is_page:
            return f"{found[1]}{depth}contributing.md)"
        if target.is_dir():
            return f"{found[1]}{depth}guides/README.md)"
        return f"{found[1]}{depth}{place_of(target)}{found[3]}"

    parts = FENCE.split(text)
    return "".join(part if n % 2 else LINK.sub(moved, part) for n, part in enumerate(parts))


class SitePage(HTMLParser):
    """Links and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if (link := values.get("href" if tag == "a" else "src")) and tag in ("a", "img"):
            self.links.append(link)


def broken_links(site: Path) -> list[str]:
    """Links inside the site that lead to no file, or to no heading of it."""
    pages = {path: SitePage() for path in site.rglob("*.html")}
    for path, page in pages.items():
        page.feed(path.read_text())
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
