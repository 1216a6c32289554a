"""Links between pages lead somewhere."""

import re
from typing import NamedTuple

import pytest

from tests.docs.pages import PAGES, ROOT, prose_of, text_of

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Link(NamedTuple):
    page: str
    target: str


def links() -> list[Link]:
    return [
        Link(page, target)
        for page in PAGES
        for target in _LINK.findall(prose_of(page))
        if "://" not in target
    ]


def anchors(page: str) -> set[str]:
    """Anchors of headings, and those that a page has for old links."""
    text = prose_of(page)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    } | {*re.findall(r'<a id="([\w-]+)"></a>', text)}


@pytest.mark.parametrize(
    "link", links(), ids=lambda each: f"{each.page}->{each.target}"
)
def test_the_link_leads_somewhere(link: Link) -> None:
    path, _hash, anchor = link.target.partition("#")
    target = ((ROOT / link.page).parent / path).resolve() if path else ROOT / link.page

    assert target.is_relative_to(ROOT)
    assert target.exists()
    if anchor:
        assert anchor in anchors(target.relative_to(ROOT).as_posix())


def test_every_file_that_a_page_names_exists() -> None:
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"[\w/]+/\w+\.(?:py|yaml)", text_of(page))
    }

    def exists(page: str, name: str) -> bool:
        homes = (ROOT, ROOT / "src/ringleaf", (ROOT / page).parent)
        return any((home / name).exists() for home in homes)

    missing = [each for each in named if not exists(*each)]

    assert named
    assert missing == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"`(test_\w+)`", text_of(page))
    }
    files = (ROOT / "tests").rglob("test_*.py")
    known = {
        name
        for file in files
        for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))
    }

    assert named
    assert sorted(each for each in named if each[1] not in known) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[str] = set()
    pending = ["README.md"]
    while pending:
        page = pending.pop()
        if page in seen or page not in PAGES:
            continue
        seen.add(page)
        for link in links():
            if link.page == page:
                path = link.target.partition("#")[0]
                target = ((ROOT / page).parent / path).resolve()
                pending.append(target.relative_to(ROOT).as_posix())

    assert sorted(set(PAGES) - seen) == []
