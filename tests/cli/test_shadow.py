"""``ringleaf shadow-report``, and the flags of a shadow."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from ringleaf.explain.match import Agreement
from ringleaf.kube.shadow_results import Finding, Place, ShadowResults
from tests.cli.conftest import Ringleaf

SAME = Finding(1.0, "team/even", Agreement.SAME, "1 x 8 chips")
UNSAID = Finding(2.0, "team/silent", Agreement.CHIPS_UNSAID, "1 x 8 chips")
RULE = Finding(
    3.0,
    "default/podgroup-1",
    Agreement.RULE,
    "1 x 2 chips",
    "not-wired-together",
    "a pod needs 2 free chips in one ring",
    (Place("n1", (1, 4), "train"),),
    (Place("n2", (0, 1, 3), "train"),),
    2,
)
GANG = Finding(
    4.0,
    "team/gang",
    Agreement.WAITS_HERE,
    "6 x 8 chips",
    "queue",
    "queue 'q' has no room",
    tuple(Place(f"n{i}") for i in range(6)),
)
LATE = Finding(5.0, "team/late", Agreement.WAITS_THERE, rule="not-bound", why="fits")


def log_of(path: Path, *findings: Finding) -> str:
    lines = [msgspec.json.encode(each) for each in findings]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return str(path)


def test_a_log_is_told_by_verdict_and_rule_and_job(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = log_of(tmp_path / "log", SAME, UNSAID, RULE, GANG)

    done = ringleaf("shadow", "report", "--from", file, columns=200)

    assert (done.status, done.err) == (1, "")
    assert done.lines[0].startswith("4 jobs judged since 1970-01-01")
    assert done.lines[1] == "agreement 50 %: 2 jobs, 1 of them on nodes only"
    told = [line.split() for line in done.lines]
    assert ["same", "1", "same", "nodes,", "same", "chips"] in told
    assert "waits-here      1   queue" in done.out
    end = done.lines[done.lines.index("team/gang (6 x 8 chips): waits-here, queue") :]
    assert end == [
        "team/gang (6 x 8 chips): waits-here, queue",
        "  theirs n0; n1; n2; n3; … 2 more",
        "  ours   nowhere",
        "  why    queue 'q' has no room",
        "",
        "default/train (1 x 2 chips): rule, not-wired-together",
        "  theirs n1 chips 1,4",
        "  ours   n2 chips 0-1,3",
        "  why    a pod needs 2 free chips in one ring",
        "  note   2 other jobs came or went meanwhile",
    ]


def test_differences_beyond_the_top_are_counted(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = log_of(tmp_path / "log", RULE, GANG)

    done = ringleaf("shadow", "report", "--from", file, "--top", "1")

    assert "default/train" not in done.out
    assert done.lines[-1] == "… 1 more; --top shows them"


def test_agreement_on_every_job_is_a_yes(ringleaf: Ringleaf, tmp_path: Path) -> None:
    file = log_of(tmp_path / "log", SAME)

    done = ringleaf("shadow", "report", "--from", file, "--json")

    assert done.status == 0
    found = json.loads(done.out)
    assert (found["jobs"], found["agreement"]) == (1, 1.0)
    assert found["verdicts"]["same"] == 1


def test_no_job_yet_is_no_agreement(ringleaf: Ringleaf) -> None:
    done = ringleaf("shadow", "report", "--from", "-", stdin="")

    assert (done.status, done.lines[0]) == (1, "0 jobs judged")
    assert done.lines[1].startswith("hint: a job is judged once its pods are bound")


class Answer(BaseHTTPRequestHandler):
    """What a shadow answers, on one path."""

    body = b""

    def do_GET(self) -> None:
        known = self.path == "/shadow"
        self.send_response(200 if known else 404)
        self.end_headers()
        if known:
            self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Where a shadow answers that has found little."""
    findings = ShadowResults(1000.0, ["volcano"])
    findings.add(SAME)
    findings.wait(LATE)
    Answer.body = msgspec.json.encode(findings.summary())
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_running_shadow_is_asked(ringleaf: Ringleaf, url: str) -> None:
    done = ringleaf("shadow", "report", "--from", url, columns=200)

    assert (done.status, done.err) == (1, "")
    assert "1 job judged beside volcano since " in done.lines[0]
    assert ["waits-there", "1"] in [line.split()[:2] for line in done.lines]
    assert "team/late (): waits-there, not-bound" in done.out
    assert ringleaf("shadow", "report", "--from", f"{url}/shadow").status == 1


BAD = [
    pytest.param("no/such/file", "no/such/file: No such file or directory", id="file"),
    pytest.param("host:1", "No such file or directory; hint: http://host:1", id="host"),
    pytest.param("{url}/other", "/other/shadow: status 404; hint: is ", id="page"),
    pytest.param("http://127.0.0.1:1", "127.0.0.1:1/shadow: ", id="nobody"),
]


@pytest.mark.parametrize(("source", "told"), BAD)
def test_what_cannot_be_read_is_one_line(
    ringleaf: Ringleaf, url: str, source: str, told: str
) -> None:
    done = ringleaf("shadow", "report", "--from", source.format(url=url))

    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1


def test_a_file_that_is_no_log_is_one_line(ringleaf: Ringleaf, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text('{"at": 1}\n')

    done = ringleaf("shadow", "report", "--from", str(file))

    assert done.status == 2
    assert f"{file}:1: Object missing required field `job`; hint: want" in done.err


def test_a_page_that_is_no_report_is_one_line(ringleaf: Ringleaf, url: str) -> None:
    Answer.body = b"hello"

    done = ringleaf("shadow", "report", "--from", url)

    assert done.status == 2
    assert "/shadow: JSON is malformed" in done.err


FLAGS = [
    ["--shadow-name", "volcano"],
    ["--shadow-log", "log"],
    ["--shadow-patience", "3"],
    ["--canary-queue", "q"],
    ["--canary-namespace", "n"],
]


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_of_a_shadow_want_a_shadow(ringleaf: Ringleaf, flags: list[str]) -> None:
    done = ringleaf("scheduler", *flags)

    assert done.status == 2
    assert "goes with --shadow, which is missing" in done.err


def test_a_shadow_decides_nothing_that_could_be_recorded(ringleaf: Ringleaf) -> None:
    done = ringleaf("scheduler", "--shadow", "--record", "log")

    assert done.status == 2
    assert "--record goes with a scheduler that decides" in done.err


def test_a_canary_has_a_name_of_its_own(ringleaf: Ringleaf) -> None:
    names = ("--scheduler-name", "ringleaf", "--scheduler-name", "volcano")

    done = ringleaf("scheduler", "--shadow", "--canary-queue", "q", *names)

    assert done.status == 2
    assert "both 'volcano', want different ones" in done.err


def test_a_name_that_a_shadow_does_not_use_is_warned_of(ringleaf: Ringleaf) -> None:
    where = ("--kubeconfig", "no/such/file")

    done = ringleaf("scheduler", "--shadow", "--scheduler-name", "other", *where)
    usual = ringleaf("scheduler", "--shadow", *where)

    assert "--scheduler-name has no effect on a shadow without a canary" in done.err
    assert "no effect" not in usual.err


def test_a_log_that_cannot_be_written_is_one_line(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    file = tmp_path / "no" / "log"

    done = ringleaf(
        *("scheduler", "--shadow", "--kubeconfig", str(config)),
        *("--shadow-log", str(file)),
    )

    assert done.status == 2
    assert f"{file}: No such file or directory" in done.err


def test_help_has_examples(ringleaf: Ringleaf) -> None:
    assert ringleaf("shadow", "-h") == ringleaf("shadow-report", "-h")
    assert "ringleaf shadow-report --from" in ringleaf("shadow-report", "-h").out
