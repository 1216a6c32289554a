"""docs/policies/switches.md says what operators learn before they use 2.0."""

import pytest

from ringleaf.kube.rank_table import LABEL
from tests.docs.pages import section, text_of

PAGE = "docs/policies/switches.md"
BEFORE = "Before you use 2.0"


@pytest.mark.parametrize(
    "page", ["docs/configuration.md", "docs/install.md", "docs/summary.md"]
)
def test_pages_that_tell_how_to_use_2_0_say_what_to_read_before(page: str) -> None:
    text = text_of(page)

    assert "2.0" in text
    assert "(policies/switches.md#before-you-use-20)" in text


def test_what_2_0_requires_is_explained() -> None:
    """The parameter plane, its controller, and what the controller reads."""
    text = section(PAGE, BEFORE)

    assert "*parameter plane*" in text
    assert f"-l {LABEL}=true" in text  # finds the summaries that the controller reads
    for page in ("topology.md", "summary.md"):
        assert f"(../{page})" in text
