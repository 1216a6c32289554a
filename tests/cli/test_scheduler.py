"""The log of ``ringleaf scheduler``, and how it follows its configuration."""

# ruff: noqa: ASYNC240 - files are what this is about
import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ringleaf.cli.conf_file import read_file
from ringleaf.cli.failure import BadUse
from ringleaf.cli.scheduler import MOST_BYTES, Watched, _follow, log_lines
from ringleaf.config.conf import Conf


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_line_of_the_log_is_json_without_what_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_lines()("bind", job="a/b", pods=2, warnings="", why=None)

    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"job": "a/b", "pods": 2, "event": "bind"}


def test_what_is_no_json_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    log_lines()("trouble", why=ValueError("no such thing"))

    assert json.loads(capsys.readouterr().err)["why"] == "no such thing"


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal_the_log_is_words(
    monkeypatch: pytest.MonkeyPatch, *, colour: bool
) -> None:
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    log_lines()("bind", job="a/b", pods=2, warnings="")

    said = out.getvalue()
    assert "job=a/b pods=2\n" in said
    assert ("\x1b[" in said) is colour


def test_a_log_that_nobody_reads_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", Broken())

    log_lines()("bind", job="a/b")


class Ruled:
    """Somebody who goes by a configuration."""

    def __init__(self) -> None:
        self.conf: Conf | None = None
        self.refused: list[str] = []

    def reconfigure(self, conf: Conf) -> None:
        self.conf = conf

    def refuse_conf(self, why: str) -> None:
        self.refused.append(why)


def following(file: Path, story: Callable[[Ruled], Awaitable[None]]) -> None:
    """Follow *file*, which was just read, while *story* happens."""
    watched, ruled = Watched(str(file)), Ruled()

    async def run() -> None:
        task = asyncio.create_task(_follow(watched, [ruled], lambda *_a, **_b: None))
        async with asyncio.timeout(30):
            await story(ruled)
        assert not task.done()
        task.cancel()

    asyncio.run(run())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def write(file: Path, actions: str) -> None:
    tiers = "tiers: [{plugins: [{name: gang}, {name: predicates}]}]"
    file.write_text(f'actions: "{actions}"\n{tiers}\n', encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "volcano-scheduler.conf"
    write(found, "enqueue, allocate")
    return found


def test_a_configuration_that_changes_while_everything_starts_is_read(
    file: Path,
) -> None:
    watched, ruled = Watched(str(file)), Ruled()
    write(file, "allocate")

    async def run() -> None:
        task = asyncio.create_task(_follow(watched, [ruled], lambda *_a, **_b: None))
        async with asyncio.timeout(30):
            await until(lambda: ruled.conf)
        task.cancel()

    asyncio.run(run())

    assert ruled.conf is not None
    assert ruled.conf.actions == ("allocate",)


@pytest.mark.slow
def test_a_configuration_that_is_gone_is_told_and_read_when_it_is_back(
    file: Path,
) -> None:
    async def story(ruled: Ruled) -> None:
        away = file.rename(file.with_name("away"))
        await until(lambda: ruled.refused)
        assert "No such file" in ruled.refused[0]
        away.rename(file)
        await until(lambda: ruled.conf)

    following(file, story)


@pytest.mark.slow
@pytest.mark.parametrize("thing", ["a folder", "a link to nowhere"])
def test_what_takes_the_place_of_a_configuration_is_refused(
    file: Path, thing: str
) -> None:
    async def story(ruled: Ruled) -> None:
        file.unlink()
        file.mkdir() if thing == "a folder" else file.symlink_to("nowhere")
        await until(lambda: ruled.refused)
        assert ruled.conf is None

    following(file, story)


def test_a_configuration_whose_rights_change_is_read_again(file: Path) -> None:
    """One that could not be read can be, and nobody has written it since."""

    async def story(ruled: Ruled) -> None:
        file.chmod(0o600)
        await until(lambda: ruled.conf)

    following(file, story)


def test_a_configuration_that_is_half_written_is_not_read(file: Path) -> None:
    async def story(ruled: Ruled) -> None:
        whole = file.read_text(encoding="utf-8")
        with file.open("w", encoding="utf-8") as out:
            for letter in whole:
                out.write(letter)
                out.flush()
                await asyncio.sleep(0.01)
        await until(lambda: ruled.conf)
        assert ruled.refused == []

    following(file, story)


def test_a_huge_configuration_is_refused_unread(file: Path) -> None:
    async def story(ruled: Ruled) -> None:
        file.write_text("#" * (MOST_BYTES + 1), encoding="utf-8")
        await until(lambda: ruled.refused)
        assert f"want at most {MOST_BYTES}" in ruled.refused[0]

    following(file, story)


def test_an_error_of_any_kind_does_not_end_the_following(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_file: str) -> None:
        raise RecursionError("too deep")

    async def story(ruled: Ruled) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("ringleaf.cli.conf_file.read_file", broken)
            write(file, "allocate")
            await until(lambda: ruled.refused)
        write(file, "enqueue, allocate, backfill")
        await until(lambda: ruled.conf)

    following(file, story)


def test_of_many_problems_the_first_is_told_and_where_the_others_are(
    file: Path,
) -> None:
    file.write_text("actions: allocat, bakfill, evict\nodd: 1\n")

    with pytest.raises(BadUse) as caught:
        read_file(str(file))

    told = str(caught.value)
    assert told.startswith(f"{file}: line 1: ")
    assert told.endswith(f"; and 3 more: ringleaf check-conf {file} lists them")
