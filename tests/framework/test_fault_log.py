"""The book of faults: what is seen, acted on and recovered, and when."""

import pytest
from msgspec.structs import replace

from ringleaf.framework import fault_log
from ringleaf.framework.fault_log import FaultLog, News, Stage
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, Down, Fault, FaultKey, Part, PartKind, PodFault
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
WELL = Node("n0", A2, 8, 0xFF)
CHIP_3 = replace(WELL, faulty=0b1000, unhealthy=0b1000)
KEY_OF_CHIP_3 = FaultKey("n0", Cause.CHIP, Part(PartKind.CHIP, 3))
DAY = 24 * 3600.0


@pytest.fixture
def book() -> FaultLog:
    return FaultLog()


def life(book: FaultLog) -> list[tuple[str, Cause, str, float, float | None]]:
    return [
        (each.where, each.cause, each.part, each.seen, each.recovered)
        for each in book.everything
    ]


@pytest.mark.parametrize(
    ("ill", "cause", "part"),
    [
        pytest.param({"down": Down.NOT_READY}, Cause.NODE, "", id="not ready"),
        pytest.param({"ready": False}, Cause.NODE, "", id="not ready, why unsaid"),
        pytest.param({"down": Down.DAEMON}, Cause.NODE, "daemon", id="daemon says so"),
        pytest.param({"down": Down.SWITCH}, Cause.NODE, "switch", id="switch is ill"),
        pytest.param({"unhealthy": 0b1000}, Cause.CHIP, "chip 3", id="chip"),
        pytest.param({"network_faulty": 0b10}, Cause.NETWORK, "chip 1", id="network"),
        pytest.param({"weak": 0b1}, Cause.SUB_HEALTH, "chip 0", id="weak chip"),
        pytest.param(
            {"weak_switch": True, "sub_healthy": True},
            Cause.SUB_HEALTH,
            "switch",
            id="weak switch",
        ),
        pytest.param({"sub_healthy": True}, Cause.SUB_HEALTH, "", id="weak somewhere"),
    ],
)
def test_a_node_that_falls_ill_and_recovers_has_one_fault_with_both_times(
    book: FaultLog, ill: dict[str, object], cause: Cause, part: str
) -> None:
    faulty = replace(WELL, **ill)

    book.nodes_changed(None, WELL, 1.0)
    book.nodes_changed(WELL, faulty, 2.0)
    assert life(book) == [("n0", cause, part, 2.0, None)]
    book.nodes_changed(faulty, WELL, 5.0)

    assert not book.open
    assert life(book) == [("n0", cause, part, 2.0, 5.0)]


def test_chips_that_are_only_not_given_are_no_faults(book: FaultLog) -> None:
    book.nodes_changed(None, replace(WELL, faulty=0b11), 1.0)

    assert not book.everything
    assert book.version == 0


def test_of_several_faults_of_a_node_those_stay_open_that_are_still_there(
    book: FaultLog,
) -> None:
    both = replace(WELL, unhealthy=0b1010)
    book.nodes_changed(None, both, 1.0)
    book.nodes_changed(both, CHIP_3, 2.0)

    assert [each.part for each in book.of("n0")] == ["chip 3"]
    assert [each.part for each in book.recent] == ["chip 1"]
    assert book.of("n1") == ()


def test_a_node_that_goes_is_a_fault_until_it_is_back_and_its_chips_are_none(
    book: FaultLog,
) -> None:
    book.nodes_changed(None, CHIP_3, 1.0)
    book.node_quarantined("n0", "UnexpectedAdmissionError", 2.0)
    book.nodes_changed(CHIP_3, None, 3.0)

    assert [*book.open] == [FaultKey("n0", Cause.NODE)]
    assert {each.cause for each in book.recent} == {Cause.CHIP, Cause.REFUSAL}
    book.nodes_changed(None, WELL, 4.0)
    assert not book.open


def test_a_node_that_was_not_ready_and_goes_has_one_fault(book: FaultLog) -> None:
    lost = replace(WELL, ready=False, down=Down.NOT_READY)
    book.nodes_changed(None, lost, 1.0)
    book.nodes_changed(lost, None, 9.0)

    assert life(book) == [("n0", Cause.NODE, "", 1.0, None)]


def test_a_node_that_never_comes_back_is_forgotten_after_a_day(book: FaultLog) -> None:
    book.nodes_changed(WELL, None, 1.0)
    book.nodes_changed(None, replace(WELL, name="n1"), DAY)
    assert len(book.open) == 1
    book.nodes_changed(None, replace(WELL, name="n1"), DAY + 1)

    assert not book.open


def test_a_node_that_came_back_and_fell_ill_again_is_not_forgotten(
    book: FaultLog,
) -> None:
    lost = replace(WELL, down=Down.NOT_READY)
    book.nodes_changed(WELL, None, 1.0)
    book.nodes_changed(None, lost, 2.0)
    book.nodes_changed(None, replace(WELL, name="n1"), 2 * DAY)

    assert [*book.open] == [FaultKey("n0", Cause.NODE)]


def test_a_change_from_no_node_to_no_node_is_ignored(book: FaultLog) -> None:
    book.nodes_changed(None, None, 1.0)

    assert book.version == 0


def test_pods_have_faults_of_their_own_and_only_those(book: FaultLog) -> None:
    book.report_pod_faults(
        "job",
        [
            PodFault(2, Cause.POD, "n0"),
            PodFault(3, Cause.RELATION),
            PodFault(4, Cause.SUB_HEALTH),
            PodFault(5, Cause.CHIP, "n0"),
        ],
        1.0,
    )
    assert {(each.cause, each.part) for each in book.of("job")} == {
        (Cause.POD, "pod 2"),
        (Cause.RELATION, "pod 3"),
        (Cause.SUB_HEALTH, "pod 4"),
    }
    book.report_pod_faults("job", [PodFault(3, Cause.RELATION)], 2.0)
    assert [each.part for each in book.of("job")] == ["pod 3"]
    book.job_gone("job", 3.0)
    assert not book.open


def test_a_job_and_a_node_of_one_name_do_not_heal_each_other(book: FaultLog) -> None:
    book.nodes_changed(None, CHIP_3, 1.0)
    book.report_pod_faults("n0", [PodFault(0, Cause.POD)], 1.0)

    book.nodes_changed(CHIP_3, CHIP_3, 2.0)
    book.report_pod_faults("n0", [PodFault(0, Cause.POD)], 2.0)
    assert len(book.open) == 2
    book.job_gone("n0", 3.0)
    assert [key[1] for key in book.open] == [Cause.CHIP]


def test_a_node_is_quarantined_until_it_is_released(book: FaultLog) -> None:
    book.nodes_changed(None, WELL, 0.0)
    book.node_quarantined("n0", "no", 1.0, until=301.0)
    book.nodes_changed(WELL, replace(WELL, cordoned=True), 2.0)

    (fault,) = book.open.values()
    assert (fault.cause, fault.why, fault.until) == (Cause.REFUSAL, "no", 301.0)
    version = book.version
    book.node_quarantined("n0", "no", 3.0, until=301.0)
    assert book.version == version
    book.node_quarantined("n0", "no", 4.0, until=304.0)
    assert [each.until for each in book.open.values()] == [304.0]
    book.quarantine_ended("n0", 304.0)
    book.quarantine_ended("n0", 305.0)
    assert [(each.seen, each.recovered) for each in book.recent] == [(1.0, 304.0)]


def test_the_first_deletion_counts_and_every_job_is_named_once(book: FaultLog) -> None:
    book.nodes_changed(None, CHIP_3, 1.0)
    key = KEY_OF_CHIP_3

    book.mark_acted([key, FaultKey("n9", Cause.NODE)], "a", 2.0)
    book.mark_acted([key], "b", 3.0)
    version = book.version
    book.mark_acted([key], "a", 4.0)

    assert book.version == version
    assert (book.open[key].acted, book.open[key].jobs) == (2.0, ("a", "b"))


def test_times_of_a_clock_that_goes_back_are_still_a_life(book: FaultLog) -> None:
    book.nodes_changed(None, CHIP_3, 10.0)
    book.mark_acted([KEY_OF_CHIP_3], "a", 8.0)
    book.nodes_changed(CHIP_3, WELL, 7.0)

    (fault,) = book.recent
    assert (fault.seen, fault.acted, fault.recovered) == (10.0, 10.0, 10.0)


def test_a_pod_ails_because_of_its_own_chips_its_node_and_itself(
    book: FaultLog,
) -> None:
    ill = replace(WELL, unhealthy=0b11000, weak=0b1, weak_switch=True, sub_healthy=True)
    book.nodes_changed(None, ill, 1.0)
    book.report_pod_faults("a", [PodFault(2, Cause.SUB_HEALTH, "n0")], 1.0)

    chip = PodFault(2, Cause.CHIP, "n0")
    assert [str(key.part) for key in book.keys_about("a", chip)] == ["chip 3", "chip 4"]
    assert [str(key.part) for key in book.keys_about("a", chip, [4, 5])] == ["chip 4"]
    weak = PodFault(2, Cause.SUB_HEALTH, "n0")
    parts = [str(key.part) for key in book.keys_about("a", weak, [4])]
    assert parts == ["pod 2", "switch"]
    assert book.keys_about("a", PodFault(1, Cause.POD, "n0")) == ()


def test_news_come_in_order_with_their_durations(book: FaultLog) -> None:
    book.nodes_changed(None, WELL, 0.0)
    before = book.version
    book.nodes_changed(WELL, CHIP_3, 1.0)
    book.mark_acted([KEY_OF_CHIP_3], "a", 3.0)
    book.nodes_changed(CHIP_3, WELL, 8.0)

    reported = [(each.stage, each.lasted_s) for each in book.news(before)]
    assert reported == [(Stage.SEEN, 0.0), (Stage.ACTED, 2.0), (Stage.RECOVERED, 7.0)]
    assert [each.stage for each in book.news(book.version - 1)] == [Stage.RECOVERED]
    assert [*book.news(book.version)] == []
    assert book.counts == {(Cause.CHIP, stage): 1 for stage in Stage}


def test_news_without_its_time_lasted_no_time() -> None:
    news = News(1, Stage.ACTED, Fault("n0", Cause.NODE, seen=5.0))

    assert news.lasted_s == 0.0


def test_of_recovered_faults_the_newest_are_kept(
    book: FaultLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_log, "MOST_RECENT", 3)
    for at in range(5):
        book.nodes_changed(WELL, CHIP_3, 2.0 * at)
        book.nodes_changed(CHIP_3, WELL, 2.0 * at + 1)

    assert [each.recovered for each in book.recent] == [5.0, 7.0, 9.0]


def test_recovered_faults_are_kept_for_a_day(book: FaultLog) -> None:
    book.nodes_changed(WELL, CHIP_3, 0.0)
    book.nodes_changed(CHIP_3, WELL, 1.0)

    book.nodes_changed(WELL, WELL, DAY + 1)
    assert len(book.recent) == 1
    book.nodes_changed(WELL, WELL, DAY + 2)
    assert not book.recent


WRITTEN = (
    Fault("n0", Cause.CHIP, "chip 3", seen=1.0, acted=2.0, jobs=("a",)),
    Fault("n0", Cause.CHIP, "chip 5", seen=1.0),
    Fault("n0", Cause.CHIP, "chip 6", seen=0.0, recovered=1.0),
    Fault("a", Cause.POD, "pod 1", seen=2.0),
    Fault("a", Cause.POD, "pod 2", seen=2.0),
)


@pytest.mark.parametrize("first", ["faults", "nodes"])
def test_after_a_restart_faults_go_on_whichever_events_come_first(
    book: FaultLog, first: str
) -> None:
    def nodes() -> None:
        book.nodes_changed(None, CHIP_3, 10.0)
        book.report_pod_faults("a", [PodFault(1, Cause.POD)], 10.0)

    if first == "nodes":
        nodes()
    book.restore(WRITTEN, 10.0)
    if first == "faults":
        nodes()

    assert {*book.open.values()} == {WRITTEN[0], WRITTEN[3]}
    assert {*book.recent} == {
        WRITTEN[2],
        replace(WRITTEN[1], recovered=10.0),
        replace(WRITTEN[4], recovered=10.0),
    }
    assert [each.recovered for each in book.recent] == [1.0, 10.0, 10.0]
    version = book.version
    book.restore(WRITTEN, 10.0)
    assert book.version == version


def test_what_is_known_is_no_news(book: FaultLog) -> None:
    book.restore(WRITTEN, 10.0)

    assert book.version
    assert [*book.news(0)] == []


def test_two_halves_of_a_life_are_one(book: FaultLog) -> None:
    book.nodes_changed(None, CHIP_3, 10.0)
    book.mark_acted([KEY_OF_CHIP_3], "b", 11.0)
    book.restore(WRITTEN[:1], 12.0)

    (fault,) = book.open.values()
    assert (fault.seen, fault.acted, fault.jobs) == (1.0, 2.0, ("a", "b"))


def test_a_life_begins_as_it_was_written_although_clocks_differ(
    book: FaultLog,
) -> None:
    book.nodes_changed(None, CHIP_3, 0.5)
    book.mark_acted([KEY_OF_CHIP_3], "b", 0.75)
    book.restore([replace(WRITTEN[0], acted=None, jobs=())], 0.5)

    (fault,) = book.open.values()
    assert (fault.seen, fault.acted, fault.jobs) == (1.0, 1.0, ("b",))


def test_a_stored_fault_that_is_not_confirmed_is_kept_for_a_day(book: FaultLog) -> None:
    book.restore([Fault("gone", Cause.CHIP, "chip 0", seen=1.0)], 10.0)
    book.nodes_changed(None, WELL, 10.0)
    assert len(book.open) == 1

    book.nodes_changed(WELL, WELL, DAY + 10.0)
    assert not book.open
    book.restore([Fault("gone", Cause.CHIP, "chip 0", seen=1.0)], DAY + 11.0)
    assert not book.open


def test_a_node_stays_quarantined_after_a_restart_until_its_time_is_over(
    book: FaultLog,
) -> None:
    aside = Fault("n0", Cause.REFUSAL, seen=1.0, until=20.0)
    book.nodes_changed(None, WELL, 10.0)

    book.restore([aside, replace(aside, where="n1", until=9.0)], 10.0)
    assert [*book.open] == [aside.key]
    assert [each.where for each in book.recent] == ["n1"]
    book.nodes_changed(None, WELL, 20.0)
    assert not book.open


def test_many_that_are_given_up_at_once_are_given_up(book: FaultLog) -> None:
    many = [Fault(f"n{i}", Cause.NODE, seen=1.0) for i in range(3_000)]
    book.restore(many, 1.0)
    book.nodes_changed(None, WELL, DAY + 1.0)

    assert not book.open
    assert len(book.recent) == fault_log.MOST_RECENT


@pytest.mark.parametrize("text", ["", "daemon", "switch", "chip 3", "pod 12"])
def test_a_part_that_was_written_reads_as_the_part_that_it_was(text: str) -> None:
    assert str(Part.read(text)) == text


@pytest.mark.parametrize(
    "text", ["lid", "chip", "pod x", "switch 1", "chip " + "9" * 99]
)
def test_of_a_part_that_no_node_has_the_fault_is_one_of_the_whole(text: str) -> None:
    fault = Fault("n0", Cause.CHIP, text)

    assert fault.key == FaultKey("n0", Cause.CHIP)


def test_faults_recover_in_the_order_in_which_their_parts_are_written(
    book: FaultLog,
) -> None:
    ill = replace(WELL, unhealthy=1 << 2 | 1 << 10)
    book.nodes_changed(None, ill, 1.0)
    book.nodes_changed(ill, WELL, 2.0)

    assert [each.part for each in book.recent] == ["chip 10", "chip 2"]
