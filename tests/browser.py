"""A browser as a fixture; tests that need one are left out where there is none."""

from collections.abc import Iterator
from typing import Final

import pytest

from ringleaf_testbed.browser import Tab, browsing, find_chromium

NO_BROWSER: Final = "no Chromium (hint: apt-get install chromium)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Tab]:
    """A page in a browser, for all tests of a module."""
    with browsing() as page:
        yield page


@pytest.fixture
def browser(chromium: Tab) -> Tab:
    """The page, with no error on it."""
    chromium.errors.clear()
    return chromium


def leave_out_without_browser(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of *items* that need a browser, where there is none."""
    if find_chromium() is not None:
        return []
    return [item for item in items if "chromium" in getattr(item, "fixturenames", ())]
