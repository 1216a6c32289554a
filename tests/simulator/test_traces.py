"""Traces: jobs that ran on a real cluster, read from its log."""

import gzip
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, booleans, integers, sampled_from

from ringleaf.model.run_time import NO_ORIGIN, Origin
from ringleaf.simulator.preset import Knobs
from ringleaf.simulator.sites import site
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.traces import read_trace
from ringleaf.simulator.trial import Ending, JobSpec, Workload
from tests.docs.pages import ROOT
from tests.effort import examples

Write = Callable[..., Path]

SITE = site("leaf-spine-512:nodes=16")
BIG = site("leaf-spine-512")
TRACES = ROOT.parent / "shared" / "traces"


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(text: str, name: str = "trace.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def job_specs(found: Workload) -> list[JobSpec]:
    return list(found.job_specs())


def asked(found: Workload) -> list[tuple[float, float, int, int]]:
    """When, how long, pods, chips of each."""
    return [
        (w.arrives, w.runs_s, w.job.replicas, w.job.chips) for w in found.job_specs()
    ]


PLAIN = """\
# a comment, with "quotes
submit,duration,chips
100,60,1
# another
40,30.2,20

70,5,3
"""


def test_rows_come_in_the_order_of_arrival_from_zero(written: Write) -> None:
    found = read_trace(written(PLAIN), SITE)

    assert asked(found) == [(0.0, 31.0, 3, 8), (30.0, 5.0, 1, 4), (60.0, 60.0, 1, 1)]
    assert (found.name, found.n_jobs, found.span_s) == ("trace.csv", 3, 60.0)
    assert found.load == pytest.approx((24 * 31 + 4 * 5 + 60) / (128 * 60))


def test_times_are_seconds_or_dates_with_or_without_a_zone(written: Write) -> None:
    text = (
        "submit,duration,chips\n2026-01-01 00:01:00,1,1\n"
        "2026-01-01T02:00:00+02:00,1,1\n"
        "2026-01-01T00:00:30.5Z,1,1\n"
    )

    found = read_trace(written(text), SITE)

    assert [spec.arrives for spec in found.job_specs()] == [0.0, 30.5, 60.0]


@pytest.mark.parametrize(
    ("unit", "at"), [("s", 3000.0), ("ms", 3.0), ("us", 0.003), ("min", 180_000.0)]
)
def test_numbers_have_the_unit_that_is_told(
    written: Write, unit: str, at: float
) -> None:
    path = written("when,ran,n\n0,1,1\n3000,1,1\n")

    found = read_trace(path, SITE, f"submit=when,duration=ran,chips=n,unit={unit}")

    assert found.span_s == pytest.approx(at)


def test_the_load_is_the_one_that_was_asked_for(written: Write) -> None:
    found = read_trace(written(PLAIN), SITE, load=0.7)

    area = sum(n * chips * s for _at, s, n, chips in asked(found))

    assert area / (SITE.chips * found.span_s) == pytest.approx(0.7, rel=1e-12)
    assert asked(found)[1][0] == pytest.approx(found.span_s / 2)


def test_a_factor_moves_arrivals_apart(written: Write) -> None:
    found = read_trace(written(PLAIN), SITE, factor=3.0)

    assert [spec.arrives for spec in found.job_specs()] == [0.0, 90.0, 180.0]


def test_only_the_first_jobs_are_taken(written: Write) -> None:
    found = read_trace(written(PLAIN), SITE, jobs=2)

    assert [spec.arrives for spec in found.job_specs()] == [0.0, 30.0]
    assert (found.n_jobs, found.span_s) == (2, 30.0)


def test_what_the_file_counts_may_be_nodes(written: Write) -> None:
    found = read_trace(written("submit,duration,chips\n0,1,2\n1,1,1\n"), SITE, times=8)

    assert [(n, chips) for _at, _s, n, chips in asked(found)] == [(2, 8), (1, 8)]


def test_jobs_larger_than_the_cluster_are_cut_with_a_note(written: Write) -> None:
    found = read_trace(written("submit,duration,chips\n0,1,999\n1,1,1\n"), SITE)

    assert asked(found)[0][2:] == (16, 8)
    (note,) = found.notes
    assert note == (
        "1 job requests more chips than leaf-spine-512:nodes=16 has for them, up to "
        "999: cut to fit"
    )


MANY = """\
job,vc,at,ran,n,end,sort,limit
a,gold,0,10,1,COMPLETED,train,20
b,,1,10,1,Killed,eval,
c,iron,2,10,1,NODE_FAIL,,15
d,gold,3,10,1,mysterious,train,0
e,gold,4,0,1,COMPLETED,train,0
f,gold,5,10,0,COMPLETED,train,0
"""
OWN = "submit=at,duration=ran,chips=n,queue=vc,status=end,kind=sort,estimate=limit"


def test_a_mapping_of_ones_own_names_every_column(written: Write) -> None:
    found = read_trace(written(MANY), SITE, OWN, queues=True)

    rows = [
        (w.job.queue, w.ending, w.kind, w.job.estimate_s) for w in found.job_specs()
    ]

    assert rows == [
        ("gold", Ending.DONE, "train", 20.0),
        ("default", Ending.CANCELLED, "eval", None),
        ("iron", Ending.FAILED, "job", 15.0),
        ("gold", Ending.DONE, "train", None),
    ]
    assert found.queues == ("gold", "iron")
    assert found.notes == (
        "2 rows have no chips or no running time: left out",
        "1 row has status 'mysterious', which is unknown: taken as done",
    )


def test_a_file_may_tell_when_jobs_began_and_ended(written: Write) -> None:
    path = written("a,b,e,n\n0,2000,5000,1\n1000,,,1\n2000,4000,4500,1\n")

    found = read_trace(path, SITE, "submit=a,begin=b,end=e,chips=n,unit=ms")

    assert asked(found) == [(0.0, 3.0, 1, 1), (2.0, 1.0, 1, 1)]
    assert found.notes == ("1 row has no chips or no running time: left out",)


def test_queues_of_the_file_count_only_if_they_are_to(written: Write) -> None:
    found = read_trace(written(MANY), SITE, OWN)

    assert {spec.job.queue for spec in found.job_specs()} == {"default"}
    assert found.queues == ()


def test_estimates_may_be_made_up(written: Write) -> None:
    found = read_trace(written(MANY), SITE, OWN, knobs=Knobs(estimate=2.0))

    assert {spec.job.estimate_s for spec in found.job_specs()} == {20.0}


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        (
            "philly",
            "timestamp,duration,num_gpus,gpu_time,cluster",
            "2017-10-09 07:01:55,66.0,4,264.0,11cb48",
        ),
        (
            "helios",
            "job_id,tenant,class,submit_time,num_chips,duration_s,final_status",
            "7,vc,finetune,5835000000,4,66.0,COMPLETED",
        ),
        (
            "helios-log",
            "job_id,user,vc,gpu_num,state,submit_time,duration",
            "7,u,vc,4,COMPLETED,2020-04-01 00:00:09,66",
        ),
        (
            "openb",
            "name,num_gpu,pod_phase,creation_time,deletion_time,scheduled_time",
            "p,4,Succeeded,9437497,9437566,9437500",
        ),
    ],
)
def test_known_logs_are_told_by_their_header(
    written: Write, name: str, header: str, row: str
) -> None:
    path = written(f"{header}\n{row}\n")

    found = read_trace(path, SITE)

    assert asked(found) == [(0.0, 66.0, 1, 4)]
    assert " et al., " in found.about
    assert asked(read_trace(path, SITE, name)) == asked(found)


SWF = """\
; Computer: A machine
; Acknowledge: Somebody
  1  0 -1  60  4 -1 -1  8  120 -1 1 1 1 -1 2 -1 -1 -1
  2 10 -1  30 -1 -1 -1 16   -1 -1 0 1 1 -1 -1 -1 -1 -1
  3 20 -1  -1  4 -1 -1  4   -1 -1 5 1 1 -1 2 -1 -1 -1
"""


def test_swf_has_its_fields_by_their_place(written: Write) -> None:
    found = read_trace(written(SWF, "a.swf"), SITE, queues=True)

    assert asked(found) == [(0.0, 60.0, 1, 4), (10.0, 30.0, 2, 8)]
    first, second = job_specs(found)
    assert (first.job.queue, second.job.queue) == ("2", "default")
    assert (first.ending, second.ending) == (Ending.DONE, Ending.FAILED)
    assert (first.job.estimate_s, second.job.estimate_s) == (120.0, None)
    assert found.about == ("A machine; Parallel Workloads Archive; thanks to Somebody")
    assert found.notes == ("1 row has no chips or no running time: left out",)


def test_a_file_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress(SWF.encode()))

    assert read_trace(path, SITE).n_jobs == 2


BROKEN = "submit,duration,chips\n0,1,1\nsoon,1,1\n5,1,1\n9,1\n"


def test_a_row_that_cannot_be_read_is_told_with_its_line(written: Write) -> None:
    path = written(BROKEN)

    with pytest.raises(BadInput) as caught:
        read_trace(path, SITE)

    assert str(caught.value) == (
        f"{path}:3: submit is 'soon', want a number, or a time as 2026-01-31 12:00:00; "
        "hint: --skip-bad leaves out rows that cannot be read"
    )


def test_rows_that_cannot_be_read_are_counted_where_they_are_left_out(
    written: Write,
) -> None:
    path = written(BROKEN)

    found = read_trace(path, SITE, skip_bad=True)

    assert found.n_jobs == 2
    (note,) = found.notes
    assert note.startswith(f"left out, cannot be read: {path}:3: submit is 'soon'")
    assert note.endswith("(and 1 more)")


@pytest.mark.parametrize(
    ("text", "columns", "line"),
    [
        ("", "", "the file is empty, want a header and rows"),
        ("submit,duration,chips\n", "", "no jobs, want at least one row with chips"),
        ("a,b\n1,2\n", "", "the header is 'a, b', which no mapping fits (philly, hel"),
        ("a,b\n1,2\n", "phily", "columns is 'phily', want philly, helios, helios-log,"),
        ("a,b\n1,2\n", "philly", "no column 'timestamp' for submit, want one of a, b"),
        ("a,b\n1,2\n", "submit=a", "columns says nothing of duration or chips, want a"),
        ("a,b\n1,2\n", "submit=a,end=b", "columns says nothing of begin or chips, w"),
        ("a,b\n1,2\n", "when=a", "columns has 'when', want submit, duration, chips,"),
        ("a,b\n", "unit=h", "columns: unit is 'h', want s, ms, us, min"),
        (
            "submit,duration,chips\n1,1h,2",
            "",
            (
                ":2: duration is '1h', want a number of seconds up to 1e+12; "
                "hint: 3600 for 1h"
            ),
        ),
        (
            "a,b\n1,2\n",
            "",
            "plain); hint: --columns submit=…,duration=…,chips=…",
        ),
        ("submit,duration,chips\n1,x,2", "", ":2: duration is 'x', want a number of s"),
        ("submit,duration,chips\n1,2,inf", "", ":2: chips is 'inf', want a number up"),
        (
            "submit,duration,chips\nnan,2,1",
            "",
            ":2: submit is 'nan', want a number, or",
        ),
        ("submit,duration,chips\n1,2", "", ":2: 2 columns, want 3"),
        ("submit,duration,chips\n1,1e9,1", "", ":2: it ran 1e+09 seconds, want at mo"),
        ('submit,duration,chips\n"1,2,3', "", "unexpected end of data"),
        ("1 2 3\n", "swf", ":1: 3 fields, want 18"),
    ],
)
def test_what_is_no_trace_is_told_in_one_line(
    written: Write, text: str, columns: str, line: str
) -> None:
    with pytest.raises(BadInput) as caught:
        read_trace(written(text), SITE, columns)

    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"factor": 0.0}, "factor is 0.0, want more than 0"),
        ({"times": 0}, "times is 0, want 1 to 1000"),
        ({"load": -1.0}, "load is -1.0, want more than 0"),
        ({"jobs": 0}, "jobs is 0, want 1 to 10,000,000"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    written: Write, given: dict[str, Any], line: str
) -> None:
    with pytest.raises(BadInput, match=line):
        read_trace(written(PLAIN), SITE, **given)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (
            "absent.csv",
            "absent.csv: No such file or directory; hint: a CSV or SWF file",
        ),
        ("a\0b", "embedded null"),
        (".", "Is a directory"),
    ],
)
def test_what_is_no_file_is_told_in_one_line(path: str, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        read_trace(path, SITE)


def test_what_is_not_packed_is_told_in_one_line(written: Write) -> None:
    with pytest.raises(BadInput, match=r"a.csv.gz: not packed with gzip"):
        read_trace(written(PLAIN, "a.csv.gz"), SITE)


def test_jobs_do_not_depend_on_how_many_are_taken_together(written: Write) -> None:
    rows = "".join(f"{i},{i % 7 + 1},{i % 40 + 1}\n" for i in range(300))
    path = written(f"submit,duration,chips\n{rows}")

    found = [
        read_trace(path, site("mixed"), knobs=Knobs(at_a_time=n)) for n in (1, 64, 8192)
    ]

    assert len({repr(job_specs(each)) for each in found}) == 1


def trace(name: str) -> Path:
    """A file of the real traces; skips the test where it is not there."""
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"no {name}: left out")
    return path


def test_the_whole_philly_trace_is_read() -> None:
    found = read_trace(trace("philly_pollux.csv"), BIG)
    sizes = Counter(w.job.chips * w.job.replicas for w in found.job_specs())

    assert found.n_jobs == 82_247
    assert (sizes[1], sizes[8], sizes[16], sizes[128]) == (76_627, 1643, 206, 3)
    assert found.span_s == 9_408_690.0
    assert found.notes == ()


def test_the_helios_slice_is_read_with_its_queues() -> None:
    path = trace("helios_venus_2vc_sept.csv")
    found = read_trace(path, BIG, queues=True)
    endings = Counter(spec.ending for spec in found.job_specs())

    assert (found.n_jobs, found.queues) == (1867, ("vcvGl", "vcvlY"))
    assert endings == {"done": 786, "cancelled": 589, "failed": 492}
    assert 25 * 86400 < found.span_s < 26 * 86400


def test_processors_of_the_nasa_log_are_nodes_if_they_are_to() -> None:
    found = read_trace(trace("NASA-iPSC-1993-3.1-cln.swf"), BIG, times=8, load=0.8)
    nodes = Counter(spec.job.replicas for spec in found.job_specs())

    assert found.n_jobs + 173 == 18_239
    assert set(nodes) == {1, 2, 4, 8, 16, 32, 64, 128}
    assert "Bill Nitzberg" in found.about
    assert found.load == pytest.approx(0.8)


@settings(max_examples=examples(50))
@given(
    name=sampled_from(["a.csv", "a.swf", "a.csv.gz", "a.swf.gz"]),
    columns=sampled_from(["", "philly", "swf", OWN, "submit=at,duration=n,chips=ran"]),
    text=sampled_from([PLAIN, MANY, SWF, BROKEN]),
    data=binary(max_size=12),
    at=integers(0, 200),
    skip_bad=booleans(),
)
def test_whatever_is_in_a_file_it_is_a_workload_or_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    name: str,
    columns: str,
    text: str,
    data: bytes,
    at: int,
    skip_bad: bool,
) -> None:
    whole = text.encode()
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(whole[:at] + data + whole[at + len(data) :])

    found = outcome(path, columns, skip_bad=skip_bad)

    if isinstance(found, str):
        assert "\n" not in found
    else:
        rows = job_specs(found)
        assert len(rows) == found.n_jobs > 0
        assert all(a.arrives <= b.arrives for a, b in pairwise(rows))


def outcome(path: Path, columns: str, *, skip_bad: bool) -> Workload | str:
    """The workload, or the line that says why there is none."""
    try:
        return read_trace(path, SITE, columns, skip_bad=skip_bad)
    except BadInput as error:
        return str(error)


@pytest.mark.parametrize(
    ("sign", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
@pytest.mark.parametrize("columns", ["", "submit=a,duration=b,chips=c"])
def test_columns_that_stand_apart_by_other_signs_are_named(
    sign: str, word: str, columns: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"a{sign}b{sign}c\n1{sign}2{sign}3\n", encoding="utf-8")

    with pytest.raises(BadInput, match=f"hint: columns are separated by {word}"):
        read_trace(str(file), SITE, columns)


USERS = """\
submit,duration,chips,who,what
0,10,8,ann,train-0017
1,10,8,bob,
"""


def test_users_and_programs_are_where_jobs_come_from(written: Write) -> None:
    columns = "submit=submit,duration=duration,chips=chips,user=who,program=what"

    found = read_trace(written(USERS), SITE, columns)

    assert [w.job.origin for w in found.job_specs()] == [
        Origin("ann", "train"),
        Origin("bob", ""),
    ]


def test_without_such_columns_jobs_come_from_nowhere(written: Write) -> None:
    found = read_trace(written(PLAIN), SITE)

    assert {w.job.origin for w in found.job_specs()} == {NO_ORIGIN}


def test_users_and_executables_of_the_standard_workload_format(written: Write) -> None:
    rows = (
        f"{n} {n} -1 60 8 -1 -1 8 -1 -1 1 {user} 1 {program} 0 -1 -1 -1\n"
        for n, (user, program) in enumerate([(7, 12), (-1, -1)])
    )

    found = read_trace(written("".join(rows), "log.swf"), SITE)

    assert [w.job.origin for w in found.job_specs()] == [Origin("7", "12"), NO_ORIGIN]
