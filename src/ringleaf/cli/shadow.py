"""``ringleaf scheduler --shadow`` and ``ringleaf shadow-report``."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ringleaf.cli.failure import BadUse
from ringleaf.cli.output import TrimmedConsole, print_json, shortened, so_many
from ringleaf.explain.match import AGREES, RULE_WORDS, Agreement
from ringleaf.kube.shadow_results import Finding, Place, ShadowResults, ShadowSummary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ringleaf.config.conf import Conf
    from ringleaf.kube.api import Api
    from ringleaf.kube.service import Say
    from ringleaf.kube.shadow_loop import ShadowLoop

PAGE: Final = "/shadow"
"""Where a shadow answers."""
ANSWER_S: Final = 10.0
_PORT: Final = re.compile(r":[0-9]+(/|$)")
MAX_PLACES: Final = 4
"""Pods of one placement that are shown."""

SAYING: Final = {
    Agreement.SAME: "same nodes, same chips",
    Agreement.TIE: "equally good: only names differ",
    Agreement.CHIPS_UNSAID: "same nodes; the other scheduler names no chips",
    Agreement.BETTER_RANK: "both legal; ours ranks better",
    Agreement.RULE: "theirs breaks a rule",
    Agreement.WAITS_HERE: "the job would wait here",
    Agreement.WAITS_THERE: "it would start here, and is pending there",
}


class ShadowRun(Struct, frozen=True):
    """How a shadow is asked to run."""

    schedulers: tuple[str, ...]
    log: str | None
    patience_s: float


@contextmanager
def beside(
    api: "Api", asked: ShadowRun, conf: "Conf", say: "Say"
) -> "Iterator[ShadowLoop]":
    """A shadow that writes its log, if it is to have one."""
    from ringleaf.kube.shadow import ShadowConf  # noqa: PLC0415
    from ringleaf.kube.shadow_loop import ShadowLoop  # noqa: PLC0415

    options = ShadowConf(asked.schedulers, conf, asked.patience_s)
    if asked.log is None:
        yield ShadowLoop(api, options, say)
        return
    try:
        out = Path(asked.log).open("ab")  # noqa: SIM115 - what goes wrong later differs
    except OSError as error:
        raise BadUse(f"{asked.log}: {error.strerror or error}") from None

    def write(finding: Finding) -> None:
        out.write(msgspec.json.encode(finding) + b"\n")
        out.flush()

    with out:
        yield ShadowLoop(api, options, say, write)


@contextmanager
def ending(stop: Callable[[], None]) -> Iterator[None]:
    """Signals end it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def running(
    shadow: "ShadowLoop", failed: Callable[[], None]
) -> AsyncIterator[None]:
    """Run the shadow inside the block; *failed* is called when it ends."""
    task = asyncio.get_running_loop().create_task(shadow.run(), name="shadow")
    task.add_done_callback(lambda _task: failed())
    try:
        yield
    finally:
        shadow.stop()
        await task
    if shadow.failure is not None:
        raise shadow.failure


def report(source: str, *, most: int, as_json: bool) -> int:
    """Print what a shadow has found; 0 if it agrees on every job."""
    found = _read(source)
    if as_json:
        print_json(found)
    else:
        _print(found, most)
    return 0 if found.agreement == 1 and not found.waiting else 1


def _read(source: str) -> ShadowSummary:
    if urlsplit(source).scheme in ("http", "https"):
        return _ask(source)
    try:
        text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        hint = f"; hint: http://{source}" if _PORT.search(source) else ""
        raise BadUse(f"{source}: {error.strerror or error}{hint}") from None
    findings = ShadowResults()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            finding = msgspec.json.decode(line, type=Finding)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadUse(
                f"{source}:{number}: {error}; hint: want a line that "
                "ringleaf scheduler --shadow-log wrote"
            ) from None
        findings.since = findings.since or finding.at
        findings.add(finding)
    return findings.summary()


def _ask(url: str) -> ShadowSummary:
    """What a running shadow answers."""
    from urllib.error import HTTPError, URLError  # noqa: PLC0415
    from urllib.request import urlopen  # noqa: PLC0415

    address = url.rstrip("/")
    address = address if address.endswith(PAGE) else f"{address}{PAGE}"
    hint = "hint: is ringleaf scheduler --shadow running there, or forwarded?"
    try:
        with urlopen(address, timeout=ANSWER_S) as answer:  # noqa: S310 - http alone
            body = answer.read()
        return msgspec.json.decode(body, type=ShadowSummary)
    except HTTPError as error:
        error.close()
        raise BadUse(f"{address}: status {error.code}; {hint}") from None
    except (URLError, OSError) as error:
        why = getattr(error, "reason", error)
        why = getattr(why, "strerror", None) or why
        raise BadUse(f"{address}: {why}; {hint}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadUse(f"{address}: {error}; {hint}") from None


def _print(found: ShadowSummary, most: int) -> None:

    console = TrimmedConsole()
    since = datetime.fromtimestamp(found.since, UTC).astimezone()
    names = ", ".join(found.shadowed)
    beside_whom = f" beside {names}" if names else ""
    judged = f"{so_many(found.jobs, 'job')} judged{beside_whom}"
    begun = f" since {since:%Y-%m-%d %H:%M:%S}" if found.since else ""
    console.print(
        f"{judged}{begun}",
        highlight=False,
        markup=False,
    )
    if not found.jobs:
        whose = f" with schedulerName {' or '.join(found.shadowed)}" * bool(names)
        console.print(
            f"hint: a job{whose} is judged once its pods are bound and name their "
            "chips; ringleaf scheduler --shadow-name NAME looks at another scheduler",
            highlight=False,
            markup=False,
        )
    if found.agreement is not None:
        unsaid = found.verdicts.get(Agreement.CHIPS_UNSAID, 0)
        on_nodes = f", {unsaid} of them on nodes only" if unsaid else ""
        agreed = sum(found.verdicts.get(match, 0) for match in AGREES)
        console.print(
            f"agreement {_share(found.agreement)}: {so_many(agreed, 'job')}{on_nodes}",
            style="bold",
            highlight=False,
            markup=False,
        )
    console.print()
    console.print(_verdicts(found))
    if found.rules:
        console.print()
        console.print(_rules(found))
    _print_differences(console, (*found.waiting, *reversed(found.differences)), most)


def _share(agreement: float) -> str:
    """Percent; all of it only if it is all.

    >>> _share(1.0), _share(0.9999), _share(0.125)
    ('100 %', '99.9 %', '12.5 %')
    """
    tenths = int(agreement * 1000)
    return f"{tenths / 10:g} %"


def _verdicts(found: ShadowSummary) -> "Table":
    table = _table("verdict", "jobs", "meaning")
    for match in Agreement:
        count = found.verdicts.get(match, 0)
        style = "dim" if not count else "green" if match in AGREES else "yellow"
        table.add_row(match.value, str(count), SAYING[match], style=style)
    return table


def _rules(found: ShadowSummary) -> "Table":
    table = _table("difference", "jobs", "rule", "meaning")
    for each in found.rules:
        meaning = RULE_WORDS.get(each.rule, "")
        table.add_row(each.verdict.value, str(each.jobs), each.rule, meaning)
    return table


def _table(*heads: str) -> "Table":
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="right" if head == "jobs" else "left")
    return table


def _print_differences(
    console: "Console", differences: Iterable[Finding], most: int
) -> None:
    listed = list(differences)
    for each in listed[:most]:
        console.print()
        head = f"{_name(each)} ({each.wanted}): {each.verdict.value}, {each.rule}"
        console.print(head, style="bold", highlight=False, markup=False, soft_wrap=True)
        lines = [("theirs", _places(each.theirs)), ("ours", _places(each.ours))]
        lines.append(("why", each.why))
        if each.meanwhile:
            others = so_many(each.meanwhile, "other job")
            lines.append(("note", f"{others} came or went meanwhile"))
        for label, words in lines:
            console.print(
                f"  {label:<7}{words}", highlight=False, markup=False, soft_wrap=True
            )
    if len(listed) > most > 0:
        console.print(f"\n… {len(listed) - most} more; --top shows them", markup=False)


def _name(finding: Finding) -> str:
    """A job of one pod is known by its pod: its PodGroup was made up for it."""
    pods = [place.pod for place in finding.theirs or finding.ours]
    namespace, _slash, group = finding.job.partition("/")
    made_up = group.startswith("podgroup-") and len(pods) == 1
    return f"{namespace}/{pods[0]}" if made_up else finding.job


def _places(places: tuple[Place, ...]) -> str:
    """Where pods are, in one line."""
    told = [
        f"{each.node} chips {_chips(each.chips)}" if each.chips else each.node
        for each in places
    ]
    return shortened(told, MAX_PLACES, "; ") if told else "nowhere"


def _chips(chips: tuple[int, ...]) -> str:
    """Chips, runs of them shortened.

    >>> _chips((0, 1, 2, 5)), _chips((3,))
    ('0-2,5', '3')
    """
    ordered = sorted(chips)
    runs: list[list[int]] = []
    for chip in ordered:
        if runs and chip == runs[-1][-1] + 1:
            runs[-1].append(chip)
        else:
            runs.append([chip])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
