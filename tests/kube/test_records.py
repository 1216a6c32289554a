"""What is remembered of repairs is read as it was written, and stays small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube import records
from ringleaf.model.fault import Cause, PodFault, Record, RestartScope
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement

OF_PODS = [c for c in Cause if c not in (Cause.NETWORK, Cause.REFUSAL)]
numbers = st.integers(0, 5000)
times = st.floats(0, 4e9, allow_nan=False)
nodes = st.sampled_from(["a", "node-é", 'q"uote', "worker-17"])
marks = st.builds(
    LeafAnnotation,
    st.none() | st.sampled_from(list(JobType)),
    st.sampled_from(list(LeafState)),
    st.booleans(),
)
placements = st.builds(
    Placement,
    numbers,
    nodes,
    st.lists(st.integers(0, 63), unique=True, max_size=16).map(tuple),
    st.none() | st.integers(0, 600),
    st.none() | marks,
    st.none() | st.sampled_from(["", "master", "worker"]),
)
kept = st.builds(
    Record,
    since=times,
    scope=st.sampled_from(list(RestartScope)),
    pod_faults=st.lists(
        st.builds(PodFault, numbers, st.sampled_from(OF_PODS), nodes | st.just(""))
    ).map(tuple),
    placements=st.lists(placements).map(tuple),
    deleted=st.lists(numbers).map(tuple),
    deleted_at=st.none() | times,
    stuck_at=st.none() | times,
    retries_used=st.integers(0, 1000),
    is_over=st.booleans(),
)


@given(kept)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert records.read(records.write(record)) == record


@given(st.lists(numbers | st.integers(0, 3)))
def test_numbers_are_read_as_they_were_written(given_numbers: list[int]) -> None:
    assert list(records.unpack(records.pack(given_numbers))) == given_numbers


def large(n_pods: int, name: str) -> Record:
    """A job that loses all of its pods."""
    mark = LeafAnnotation(JobType.FOUNDATION, LeafState.SHARED)
    places = [
        Placement(i, name.format(i * 7919 % n_pods), tuple(range(16)), i // 8, mark)
        for i in range(n_pods)
    ]
    pod_faults = (PodFault(17, Cause.CHIP, places[17].node),)
    everyone = tuple(range(n_pods))
    return Record(1.7e9, RestartScope.JOB, pod_faults, tuple(places), everyone, 1.7e9)


def test_a_job_of_4096_pods_fits_with_long_names_of_nodes() -> None:
    record = large(4096, "train-cluster-east-a3-{:05d}.example")
    text = records.write(record)

    assert len(text) < 200 * 1024
    assert records.read(text) == record


def test_of_a_job_that_does_not_fit_where_its_pods_were_is_left_out() -> None:
    record = large(100, "{:0200d}")
    text = records.write(record, room=8000)
    found = records.read(text)

    assert len(text) < 8000
    assert found.placements == ()
    assert found.deleted == record.deleted
    assert found.pod_faults == record.pod_faults


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cannot be read"),
        ("{}", "cannot be read"),
        ("[1]", "cannot be read"),
        ('{"v":1,"since":"now"}', "cannot be read"),
        ('{"v":9,"since":1}', "version is 9, want 1"),
        ('{"v":1,"since":1,"reach":"planet"}', "planet"),
        ('{"v":1,"since":1,"deleted":"x"}', "'x' is no run"),
        ('{"v":1,"since":1,"deleted":"0*999999999"}', "too long"),
        ('{"v":1,"since":1,"deleted":"5-1"}', "has no numbers"),
        ('{"v":1,"since":1,"at":{"pods":"0"}}', "is inconsistent"),
        (
            '{"v":1,"since":1,"at":{"all_chips":["100000000000000000"]}}',
            "want numbers below 64",
        ),
        ('{"v":1,"since":1,"at":{"all_chips":["0*65"]}}', "too long"),
        (
            '{"v":1,"since":1,"ails":{"pods":"0","cause":"0","node":"0"}}',
            "is inconsistent",
        ),
        (
            '{"v":1,"since":1,"ails":{"causes":["PodRefused"]}}',
            "cause 'PodRefused', want one of CardUnhealthy, ",
        ),
        ('{"v":1,"since":1,"deleted":"1000000"}', "want numbers below 1000000"),
        (
            '{"v":1,"since":1,"ails":{"pods":"1000000"}}',
            "want numbers below 1000000",
        ),
        ('{"v":1,"since":1,"at":{"pods":"7000000"}}', "want numbers below 1000000"),
        ('{"v":1,"since":1,"at":{"block":"1000001"}}', "want numbers below 1000001"),
    ],
)
def test_what_is_no_record_is_told_as_such(text: str, told: str) -> None:
    with pytest.raises(records.BadRecord, match=told):
        records.read(text)
