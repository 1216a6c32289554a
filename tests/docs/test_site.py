"""The site has every page, and building it notices what is broken."""

import re
from pathlib import Path

import pytest

from ringleaf_testbed.browser import Tab
from tests.docs.codeblocks import problems as wrong_blocks
from tests.docs.pages import PAGES, text_of
from tests.docs.site import CONFIG, build, problems, stage


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as it is built."""
    folder = tmp_path_factory.mktemp("docs")
    stage(folder)
    assert build(folder) == ""
    return folder / "site"


def test_the_navigation_has_every_page_once() -> None:
    assert list(problems(CONFIG.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("navigation", "told"),
    [
        ("  - A: index.md", ["limits.md is not in the navigation"]),
        (
            "  - A: index.md\n  - B: limits.md\n  - C: limit.md",
            ["limit.md is in the navigation, but not there"],
        ),
        (
            "  - A: index.md\n  - B: limits.md\n  - C: limits.md",
            ["limits.md is in the navigation twice"],
        ),
    ],
)
def test_a_page_is_in_the_navigation_once(navigation: str, told: list[str]) -> None:
    found = problems(navigation, ("README.md", "docs/limits.md"))

    assert list(found) == [f"mkdocs.yml: {each}" for each in told]


@pytest.mark.slow
def test_every_page_is_built(built: Path) -> None:
    pages = {path.relative_to(built).as_posix() for path in built.rglob("*.html")}

    assert len(pages - {"404.html"}) == len(PAGES)
    assert {"index.html", "chart.html", "adr/0006-walks.html"} <= pages


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "adr/0006-walks.html"])
def test_a_page_of_the_folder_opens_without_an_error(
    browser: Tab, built: Path, page: str
) -> None:
    browser.open((built / page).as_uri())

    assert browser.run("__index.items.length") > len(PAGES)
    assert browser.errors == []


@pytest.mark.slow
def test_a_page_loads_nothing_from_elsewhere(built: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?https?:")

    assert [p.name for p in built.rglob("*.html") if loads.search(p.read_text())] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "told"),
    [("no-page.md", "no-page.md"), ("limits.md#no-such-heading", "anchor")],
)
def test_a_link_that_leads_nowhere_fails(tmp_path: Path, link: str, told: str) -> None:
    stage(tmp_path)
    page = tmp_path / "pages" / "index.md"
    page.write_text(f"{page.read_text()}\n[broken]({link})\n")

    assert told in build(tmp_path)


@pytest.mark.slow
def test_a_numbered_list_that_begins_again_fails(tmp_path: Path) -> None:
    stage(tmp_path)
    page = tmp_path / "pages" / "limits.md"
    page.write_text(f"{page.read_text()}\n## New\n\n1. a\n\n   b\n\n2. c\n")

    assert build(tmp_path) == "limits.html#new: the numbered list begins again"


def test_the_blocks_of_every_page_are_right() -> None:
    assert [each for page in PAGES for each in wrong_blocks(page, text_of(page))] == []


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("```\nx\n```\n", "1: the block does not say its language"),
        ("```yaml\na: [\n```\n", "1: not yaml: "),
        ("```json\n{\n```\n", "1: not json: "),
        ("```python\n>>> (\n```\n", "1: not python: "),
        ("```bash\nringleaf plan --no-such F\n```\n", "2: 'ringleaf plan' has no"),
        ("  ```text\n  ringleaf no-such\n  ```\n", "2: there is no command"),
    ],
)
def test_a_wrong_block_is_found(block: str, told: str) -> None:
    (found,) = wrong_blocks("a.md", block)

    assert found.startswith(f"a.md:{told}")
