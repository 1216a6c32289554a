"""The wheel of Ringleaf: what is in it, and what a command does without the rest."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.deploy.helm import ROOT

MOST_BYTES = 3_500_000
"""A wheel that is larger than this, unpacked, has something in it that it needs not."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = str(tmp_path_factory.mktemp("wheel"))
    return Path(next(WheelBuilder(str(ROOT)).build(directory=folder)))


def test_it_has_the_product_and_no_testbed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        files = opened.infolist()
    folders = {each.filename.partition("/")[0] for each in files}
    names = {each.filename for each in files}

    assert {each for each in folders if not each.endswith(".dist-info")} == {"ringleaf"}
    assert {"ringleaf/cli/main.py", "ringleaf/report/web/page.css"} <= names
    assert not [name for name in names if "testbed" in name or name.endswith("go.mod")]
    assert sum(each.file_size for each in files) < MOST_BYTES


def test_dev_says_where_the_testbed_is(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    script = (
        "import sys\n"
        "sys.path = [p for p in sys.path if not p.endswith('src')]\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.argv = ['ringleaf', 'dev']\n"
        "from ringleaf.cli.main import run\n"
        "run()\n"
    )

    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script],
        cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == (
        "ringleaf: dev needs the testbed, which is in the repository and not in the "
        "package; hint: run it from a checkout, after make testbed\n"
    )
