"""A namespace of the shared API server, with nothing left of it afterwards."""

from collections.abc import Iterator

import pytest

from ringleaf_testbed.cluster import Testbed
from tests.summary.cast import Cast


@pytest.fixture
def cast(testbed: Testbed, namespace: str) -> Iterator[Cast]:
    """Where jobs come and go."""
    found = Cast(testbed, namespace)
    yield found
    found.clear()
