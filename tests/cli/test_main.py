"""The command line as a whole, much of it as real processes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ringleaf
from ringleaf.cli.main import COMMANDS
from ringleaf.cli.registry import GROUPS, OLD_NAMES, PARENTS
from tests.cli.conftest import Ringleaf
from tests.docs.pages import ROOT

TOUR = ROOT / "examples" / "tour.yaml"
SCRIPT = Path(sys.executable).with_name("ringleaf")
LARGE = b"nodes: [{name: 'n{i}', count: 9, product: atlas-300t}]\njobs:\n" + b"".join(
    b"- {name: job-%d, chips: 1, replicas: 2}\n" % i for i in range(1000)
)


def python(code: str) -> str:
    """What *code* prints in a fresh interpreter."""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run *script* with ``ringleaf`` as the command under test."""
    return subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", script],
        env={**os.environ, "PATH": f"{SCRIPT.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_version(ringleaf: Ringleaf) -> None:
    assert ringleaf("--version") == (0, "ringleaf 0.1.0\n", "")


def test_the_version_is_that_of_the_package() -> None:
    metadata = "import importlib.metadata as m; print(m.version('ringleaf'), end='')"

    assert python(metadata) == ringleaf.__version__


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", [*COMMANDS, *PARENTS])
def test_every_command_has_help_with_examples(
    ringleaf: Ringleaf, command: str, option: str
) -> None:
    done = ringleaf(*command.split(), option)
    examples = done.out.partition("Examples:\n")[2].partition("\n\n")[0]

    assert (done.status, done.err) == (0, "")
    assert f"ringleaf {command}" in examples
    assert done.out.startswith(f"Usage: ringleaf {command} ")


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS, *PARENTS])
def test_help_fits_80_columns_and_cuts_nothing(
    ringleaf: Ringleaf, command: str, columns: int
) -> None:
    done = ringleaf(*command.split(), "--help", columns=columns)
    own = [x for x in done.lines if not x.startswith(("  ringleaf ", "  kubectl "))]
    prose = [line for line in own if len(line.split()) > 1]

    assert max(map(len, prose)) <= min(columns, 80)
    assert max(map(len, done.lines)) <= 80 + len("  ")
    assert "..." not in done.out.replace("COLUMN...", "")
    assert "…" not in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_what_help_says_is_whole_sentences(command: str) -> None:
    """They begin with a capital, or a word that is typed, and end with a full stop."""
    known = COMMANDS[command]
    said = [known.title, *known.body, *(each.form.help for each in known.parameters)]

    assert all(text.endswith(".") for text in said)
    assert all(
        text[0].isupper() or text.split()[0].strip(",:") in TYPED for text in said
    ), [text for text in said if text[0].islower()]


TYPED = (
    *("scenario", "none", "configmap", "bash", "fault-scheduling", "schedulerName"),
    *("volcano-scheduler.conf", "volcano-scheduler.conf."),
)


def test_the_help_lists_every_command_in_its_group(ringleaf: Ringleaf) -> None:
    text = ringleaf("--help").out
    parts = dict(re.findall(r"^(\w[\w ]*):\n((?:  .*\n)+)", text, re.MULTILINE))
    listed = {
        group: [line.split()[0] for line in parts[group].splitlines()]
        for group in GROUPS
    }

    assert [*parts] == [*GROUPS]
    for name, command in COMMANDS.items():
        assert name.split()[0] in listed[command.group]
    assert listed["Try"][0] == "compare"
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("command", [*COMMANDS, *PARENTS])
def test_help_of_a_command_is_its_help(ringleaf: Ringleaf, command: str) -> None:
    asked = ringleaf("help", *command.split())

    assert asked == ringleaf(*command.split(), "--help")


def test_help_alone_is_the_help_of_all(ringleaf: Ringleaf) -> None:
    assert ringleaf("help") == ringleaf("--help")


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_are_not_listed_and_still_work(ringleaf: Ringleaf, old: str) -> None:
    new = OLD_NAMES[old].split(maxsplit=1)[0]
    listed = [line.split()[:2] for line in ringleaf("--help").lines if line[:2] == "  "]

    assert ringleaf(*old.split(), "--help") == ringleaf(new, "--help")
    assert old == "dev up" or old.split(maxsplit=1)[0] not in {
        each[0] for each in listed
    }


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            "nope",
            "unknown command 'nope'; hint: ringleaf --help lists the commands",
        ),
        ("statsu", "unknown command 'statsu'; hint: did you mean 'status'?"),
        (
            "topology chek",
            "unknown command 'topology chek'; hint: did you mean 'topology check'?",
        ),
        (
            "help nope",
            "unknown command 'nope'; hint: ringleaf --help lists the commands",
        ),
        (
            "--json",
            (
                "ringleaf has no option '--json'; hint: options follow the command, as "
                "in ringleaf plan FILE --json"
            ),
        ),
        (
            "plan",
            (
                "plan needs a scenario, or a manifest with -f; "
                "hint: ringleaf plan --help"
            ),
        ),
        (
            "plan a b",
            "plan has the extra word 'b', want FILE; hint: ringleaf plan --help",
        ),
        (
            "status now",
            (
                "status has the extra word 'now', want only options; "
                "hint: ringleaf status --help"
            ),
        ),
        (
            "products --xyz",
            "products has no option '--xyz'; hint: ringleaf products --help",
        ),
        (
            "plan --contxt 3",
            "plan has no option '--contxt'; hint: did you mean '--context'?",
        ),
        (
            "shadow report --from",
            "--from has no value, want URL|FILE; hint: ringleaf shadow-report --help",
        ),
        (
            "explain --job --json",
            "--job has no value, want NAME; hint: ringleaf explain --help",
        ),
        (
            "explain",
            (
                "FILE|KIND/NAME is missing, want scenario file, - for standard input; "
                "hint: ringleaf explain --help"
            ),
        ),
        (
            "plan x --json=yes",
            "--json is 'yes', want no value; hint: ringleaf plan --help",
        ),
        (
            "topology convert x",
            (
                "--to is missing, want configmap, json, scenario or csv; "
                "hint: ringleaf topology convert --help"
            ),
        ),
        (
            "simulate --recovery x",
            (
                "--recovery is 'x', want off, grace or force; "
                "hint: ringleaf simulate --help"
            ),
        ),
        (
            "simulate --jobs x",
            "--jobs is 'x', want a whole number; hint: ringleaf simulate --help",
        ),
        (
            "simulate --load nan",
            "--load is nan, want a number; hint: ringleaf simulate --help",
        ),
        (
            "simulate --contention 3",
            (
                "--contention is 3, want a number from 0 to 1; "
                "hint: ringleaf simulate --help"
            ),
        ),
        (
            "explain x --job y --top 0",
            (
                "--top is 0, want a whole number, at least 1; "
                "hint: ringleaf explain --help"
            ),
        ),
        (
            "init nothing",
            (
                "WHAT is 'nothing', want scenario, cluster or conf; "
                "hint: ringleaf init --help"
            ),
        ),
        (
            "explain pod/x --job y",
            (
                "--job goes with a scenario, and pod/x is of the live cluster; "
                "hint: without --job"
            ),
        ),
        (
            "explain deploy/web",
            (
                "'deploy/web' is no file, and of the live cluster explain takes "
                "pod/NAME, job/NAME or podgroup/NAME; "
                "hint: of other kinds, name one of their pods"
            ),
        ),
        (
            "plan -f x --record y",
            "--record goes with a scenario, and -f brings a manifest",
        ),
        (
            "plan -f https://x/y.yaml",
            (
                "-f is 'https://x/y.yaml', want a file; "
                "hint: curl -s https://x/y.yaml | ringleaf plan -f -"
            ),
        ),
        (
            "plan -f /",
            "-f is the folder '/', want a file; hint: -f for each of its files",
        ),
        (
            "explain x",
            (
                "there is no file 'x'; hint: of the live cluster, ringleaf explain "
                "job/x or pod/x"
            ),
        ),
        (
            "explain x.yaml",
            (
                "explain of the scenario 'x.yaml' needs --job NAME; of the live "
                "cluster it takes pod/NAME, job/NAME or podgroup/NAME"
            ),
        ),
    ],
)
def test_bad_use_is_one_line_and_status_2(
    ringleaf: Ringleaf, call: str, line: str
) -> None:
    done = ringleaf(*call.split())

    assert (done.status, done.out) == (2, "")
    assert done.err == f"ringleaf: {line}\n"


LIVE = (
    *("--namespace x", "--kubeconfig x", "--context x"),
    *("--scheduler-name x", "--scheduler-conf x"),
)


@pytest.mark.parametrize("option", [*LIVE, "--server-dry-run"])
def test_plan_of_a_scenario_refuses_options_of_the_live_cluster(
    ringleaf: Ringleaf, option: str
) -> None:
    done = ringleaf("plan", "examples/why-waiting.yaml", *option.split())

    assert (done.status, done.out) == (2, "")
    name = option.partition(" ")[0]
    assert f"{name} goes with -f MANIFEST, and a scenario" in done.err


@pytest.mark.parametrize("option", LIVE)
def test_explain_of_a_scenario_refuses_options_of_the_live_cluster(
    ringleaf: Ringleaf, option: str
) -> None:
    call = "explain examples/why-waiting.yaml --job big"

    done = ringleaf(*call.split(), *option.split())

    assert (done.status, done.out) == (2, "")
    assert f"{option.split(maxsplit=1)[0]} goes with pod/NAME and the like" in done.err


@pytest.mark.parametrize("call", ["plan {}", "explain {} --job x"])
def test_a_manifest_without_f_is_told_of_f(
    ringleaf: Ringleaf, scenario: Callable[[str], str], call: str
) -> None:
    file = scenario("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")

    done = ringleaf(*call.format(file).split())

    assert (done.status, done.out) == (2, "")
    hint = f"hint: ringleaf plan -f {file}"
    assert done.err == f"ringleaf: {file}: it is a manifest, want a scenario; {hint}\n"


@pytest.mark.parametrize("call", ["plan {}", "explain {} --job x"])
def test_a_table_is_told_what_reads_it(
    ringleaf: Ringleaf, tmp_path: Path, call: str
) -> None:
    file = tmp_path / "racks.csv"
    file.write_text("node,rack\na,1\n")

    done = ringleaf(*call.format(file).split())

    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"ringleaf: {file}: it is a table, want a scenario; hint: a topology: ringleaf "
        f"topology draw {file}, or topology convert {file} --to scenario\n"
    )


def test_an_empty_manifest_is_told_what_a_manifest_is(
    ringleaf: Ringleaf, scenario: Callable[[str], str]
) -> None:
    done = ringleaf("plan", "-f", scenario(""))

    assert done.status == 2
    assert "no document found, want a manifest; hint: one has at least" in done.err


def test_no_command_at_all_shows_the_help_and_is_status_2(ringleaf: Ringleaf) -> None:
    done = ringleaf()

    assert done.status == 2
    assert done.out == ringleaf("--help").out


@pytest.mark.parametrize(
    "command", [[str(SCRIPT)], [sys.executable, "-m", "ringleaf"]], ids=["script", "-m"]
)
def test_both_ways_to_start_do_the_same(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603
        [*command, "products", "atlas-300t", "--json"],
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b'{"product":"atlas-300t"')


@pytest.mark.parametrize(
    "module", ["ringleaf", "ringleaf.cli.main", "ringleaf.cli.reference"]
)
def test_the_start_is_light(module: str) -> None:
    heavy = (
        *("numpy", "rich", "yaml", "msgspec", "asyncio", "argparse", "dataclasses"),
        *("ringleaf.simulator.scenario", "ringleaf.kube"),
    )
    loaded = f"import {module}, sys; print([m for m in {heavy} if m in sys.modules])"

    assert python(loaded) == "[]\n"


def test_the_public_names() -> None:
    names = [
        "BadInput",
        "Cluster",
        "Invalid",
        "Job",
        "Node",
        "PRODUCTS",
        "Placed",
        "Placement",
        "Product",
        "Reason",
        "Scenario",
        "Session",
        "Settings",
        "Statement",
        "Waiting",
        "find_product",
        "load",
    ]

    assert ringleaf.__all__ == names
    assert all(getattr(ringleaf, name) is not None for name in names)
    with pytest.raises(AttributeError, match="'ringleaf' has no attribute 'Nope'"):
        _ = ringleaf.Nope


def test_the_public_names_can_be_imported_in_a_fresh_interpreter() -> None:
    code = "from ringleaf import *; print(load, Session, PRODUCTS['atlas-300t'].key)"

    assert python(code).endswith(" atlas-300t\n")


@pytest.mark.parametrize(
    "script",
    [
        "ringleaf plan {tour} | head -n 1",
        "ringleaf plan {tour} --json | head -c 1",
        "ringleaf plan {file} | head -n 1",
        "ringleaf plan {file} --json | head -c 1",
        "ringleaf products | true",
        "ringleaf --help | true",
        "ringleaf plan {file} --json | true",
    ],
)
def test_a_reader_that_leaves_is_no_error(script: str, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(LARGE)
    done = shell(script.format(file=file, tour=TOUR))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [f"plan {TOUR}", f"plan {TOUR} --json", "products", "--help"]
)
def test_an_output_that_cannot_be_written_is_told(arguments: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = shell(f"ringleaf {arguments} > /dev/full")

    assert (done.returncode, done.stderr) == (
        2,
        "ringleaf: standard output: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (f"ringleaf plan {TOUR} >&-", 1),
        (f"ringleaf plan {TOUR} --json >&-", 1),
        ("ringleaf plan nope 2>&-", 2),
    ],
)
def test_a_closed_stream_swallows(script: str, status: int) -> None:
    done = shell(script)

    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_an_output_that_is_not_unicode_gets_escapes() -> None:
    done = shell("PYTHONIOENCODING=ascii ringleaf products atlas-310p --table")

    assert done.returncode == 0
    assert done.stdout.isascii()
    assert r"\u2026 64" in done.stdout
