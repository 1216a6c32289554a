"""Builds the documentation site: ``python -m tests.docs.site``, or ``make site``.

Pages link to each other, and to files of the project, by their paths, so that they can
be read where the project is. The site has the same pages, but those outside ``docs``
(the README, the contributing guide, the changelog, the chart's page) inside it. Staging
copies every page to ``build/docs/pages`` and turns its links. A link to a file that is
no page leads to a copy of the file; of a link to a folder only its words stay.

Building is strict: a page that is missing in the navigation, a link that leads nowhere,
a file that is missing or a numbered list that begins again inside a section fails.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Final

from tests.docs.pages import PAGES, ROOT, text_of

CONFIG: Final = ROOT / "mkdocs.yml"
BUILD: Final = ROOT / "build" / "docs"
OUTSIDE: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "deploy/chart/ringleaf/README.md": "chart.md",
}
"""Pages that are not in ``docs``, and where the site has them."""

FILES: Final = "files"
STYLES: Final = "wide.css"
_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(!?\[)((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_NAV_PAGE: Final = re.compile(r"^ +- .*: (\S+\.md)$", re.MULTILINE)


def place_of(path: str) -> str:
    """Where the site has a file of the project.

    >>> place_of("README.md"), place_of("docs/adr/0006-walks.md")
    ('index.md', 'adr/0006-walks.md')
    >>> place_of("Containerfile"), place_of("docs/report.png")
    ('files/Containerfile', 'report.png')
    """
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{FILES}/{path}"


def staged(page: str, text: str) -> tuple[str, list[str]]:
    """A page as the site has it, and the files that it links to.

    >>> staged("docs/limits.md", "A [page](../README.md#x), [more](../deploy).")
    ('A [page](index.md#x), more.', [])
    >>> staged("docs/adr/0006-walks.md", "[image](../../Containerfile)")
    ('[image](../files/Containerfile)', ['Containerfile'])
    """
    named: list[str] = []

    def turned(link: re.Match[str]) -> str:
        opening, words, target = link.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return link[0]
        found = os.path.normpath(PurePosixPath(page).parent / path)
        if (ROOT / found).is_dir():
            return words
        if found not in PAGES:
            named.append(found)
        here = PurePosixPath(place_of(page)).parent
        there = os.path.relpath(place_of(found), here)
        return f"{opening}{words}]({there}{hash_}{anchor})"

    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(turned, text[at : fence.start()]), fence[0]]
        at = fence.end()
    parts.append(_LINK.sub(turned, text[at:]))
    return "".join(parts), named


def stage(folder: Path = BUILD) -> None:
    """Write all pages, and the files that they link to, below *folder*."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    shutil.copyfile(ROOT / "docs" / STYLES, pages / STYLES)
    for page in PAGES:
        text, named = staged(page, text_of(page))
        target = pages / place_of(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        for name in named:
            copy = pages / place_of(name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy)


def problems(navigation: str, pages: tuple[str, ...] = PAGES) -> Iterator[str]:
    """What the navigation lacks, names twice, or names though it is not there.

    >>> list(problems("  - A: index.md", ("README.md", "docs/limits.md")))
    ['mkdocs.yml: limits.md is not in the navigation']
    """
    listed = _NAV_PAGE.findall(navigation)
    known = {place_of(page) for page in pages}
    yield from (
        f"mkdocs.yml: {each} is not in the navigation"
        for each in sorted(known - {*listed})
    )
    yield from (
        f"mkdocs.yml: {each} is in the navigation, but not there"
        for each in sorted({*listed} - known)
    )
    yield from (
        f"mkdocs.yml: {each} is in the navigation twice"
        for each in sorted({*listed})
        if listed.count(each) > 1
    )


class _Lists(HTMLParser):
    """The sections of a page that have several numbered lists."""

    def __init__(self) -> None:
        super().__init__()
        self.restarted: list[str] = []
        self._section = ""
        self._depth = self._lists = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count numbered lists since the last heading, nested ones not."""
        if re.fullmatch(r"h[1-6]", tag):
            self._section, self._lists = dict(attrs).get("id") or "", 0
        elif tag in {"ol", "ul"}:
            if tag == "ol" and not self._depth:
                self._lists += 1
                if self._lists == 2:
                    self.restarted.append(self._section)
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        """Leave a list."""
        self._depth -= tag in {"ol", "ul"}


def restarted(html: str) -> list[str]:
    """The sections in which a numbered list begins again.

    That happens where a paragraph or block of an item is not indented by four spaces.

    >>> restarted('<h2 id="a">A</h2><ol><li>1</li></ol><pre></pre><ol><li>1</li></ol>')
    ['a']
    >>> restarted('<h2>A</h2><ol><li><ol></ol><ol></ol></li></ol><h2>B</h2><ol></ol>')
    []
    """
    lists = _Lists()
    lists.feed(html)
    return lists.restarted


def build(folder: Path = BUILD) -> str:
    """Build the site below *folder*; what is wrong, or nothing."""
    shutil.rmtree(folder / "site", ignore_errors=True)
    shutil.copyfile(CONFIG, folder / CONFIG.name)
    command = (sys.executable, "-m", "zensical", "build", "--clean", "--strict")
    built = subprocess.run(  # noqa: S603 - our own command
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = _COLOUR.sub("", f"{built.stdout}{built.stderr}")
    if built.returncode:
        return said.partition("Traceback")[0]
    site = folder / "site"
    _index_without_server(site)
    return "\n".join(
        f"{page.relative_to(site)}#{section}: the numbered list begins again"
        for page in sorted(site.rglob("*.html"))
        for section in restarted(page.read_text(encoding="utf-8"))
    )


def _index_without_server(site: Path) -> None:
    """Write the index of the search as a script, which pages of a folder may load."""
    index = (site / "search.json").read_text(encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {index};\n", encoding="utf-8")


def main() -> int:
    """Build the site; the exit status."""
    wrong = list(problems(CONFIG.read_text(encoding="utf-8")))
    if not wrong:
        print(f"building {len(PAGES)} pages ...", flush=True)  # noqa: T201 - a command
        stage()
        wrong = build().splitlines()
    for line in wrong or [f"the site: {BUILD.relative_to(ROOT)}/site/index.html"]:
        print(line)  # noqa: T201 - a command
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
