"""The folder of the vendor's plugin that docs/race.md has a reader build."""

from pathlib import Path

import pytest
import yaml
from benchmarks.race import FOLDER, VENDOR_CONF, vendor_plugin

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf_testbed.source import TestbedError
from tests.docs.pages import text_of


def folder(tmp_path: Path, *names: str) -> str:
    for name in names:
        (tmp_path / name).write_text("")
    return str(tmp_path)


def test_no_folder_is_no_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)

    assert vendor_plugin() is None


def test_the_plugin_is_the_one_beside_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, folder(tmp_path, "vc-scheduler", "volcano-npu.so"))

    assert vendor_plugin() == (tmp_path / "volcano-npu.so").resolve()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), "no vc-scheduler and 0 plugins"),
        (("volcano-npu.so",), "no vc-scheduler and 1 plugins"),
        (("vc-scheduler", "a.so", "b.so"), "a vc-scheduler and 2 plugins"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(
    names: tuple[str, ...],
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(FOLDER, folder(tmp_path, *names))

    with pytest.raises(TestbedError, match=found):
        vendor_plugin()


def test_the_vendors_configuration_names_the_plugin_and_ringleaf_reads_it() -> None:
    written = yaml.safe_load(VENDOR_CONF.format(plugin="volcano-npu"))

    conf = read_conf(written)

    assert isinstance(conf, Conf)
    assert conf.tiers[0][1].written == "volcano-npu"
    assert conf.parameters["forceEnqueue"] is True


def test_the_page_names_the_variable() -> None:
    assert FOLDER in text_of("docs/race.md")
