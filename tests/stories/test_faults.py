"""Faults under jobs that run, in every mode, from the report to the pod after.

Volcano's job controller makes the pods again. At the end of each story a witness of all
that happened to pods says that no chip was ever owned twice.
"""

import pytest

from tests.stories.stage import A2, A3, leaf_of, node_of, notes_of, pod
from tests.stories.test_networks import marks_of
from tests.stories.ward import (
    COLLECTED,
    COLLECTED_2,
    DIRECT,
    SINGLE,
    WHOLE,
    Ward,
    names,
    on,
    place,
    places,
    uids,
)

COMMON = {"tor-affinity": "normal-schema"}
LARGE = {"tor-affinity": "large-model-schema"}
BLOCKS = {"sp-block": "32"}


def superpod_of(node: str) -> int:
    return (int(node.rpartition("-")[2]) - 22) // 4


@pytest.mark.parametrize(
    ("conf", "says", "chips", "layers"),
    [
        pytest.param(COLLECTED, {}, 4, 2, id="chips alone"),
        pytest.param(COLLECTED, LARGE, 8, 2, id="leaf 1.0"),
        pytest.param(COLLECTED, COMMON, 8, 1, id="single layer"),
        pytest.param(DIRECT, LARGE, 8, 2, id="leaf 2.0, direct reports"),
    ],
)
def test_a_chip_fails_under_a_job_and_healthy_pods_are_where_they_were(
    ward: Ward, conf: str, says: dict[str, str], chips: int, layers: int
) -> None:
    """Two jobs at once: one is deleted as a whole, of one only the faulty pod."""
    stage = ward.stage
    stage.schedule(conf)
    if layers == 1:
        stage.set_leaves(single_layer=True)
    try:
        whole = ward.run("whole", 3, chips, says | WHOLE)
        single = ward.run("single", 3, chips, says | SINGLE)
        for pods in (whole, single):
            node, own = place(pods[1])
            ward.fail_chips(node, own[:1])
        whole_now = ward.wait_for_others("whole", whole)
        single_now = ward.wait_for_others("single", single[1:2])
    finally:
        stage.set_leaves()

    for before, now in ((whole, whole_now), (single, single_now)):
        assert places(now[::2]) == places(before[::2])
        assert place(now[1]) != place(before[1])
        if says:
            assert leaf_of(node_of(now[1])) == leaf_of(node_of(before[1]))
    assert uids(single_now[::2]) == uids(single[::2])
    assert ward.deleted() == sorted(names("whole", 0, 1, 2) + names("single", 1))
    for job, before in (("whole", whole), ("single", single)):
        why = f"pod 1 on {node_of(before[1])} (CardUnhealthy)"
        (told,) = ward.told(job, "Faulty")
        assert why in told
        assert told.endswith(f"; pod 1 is '{names(job, 1)[0]}'")
        assert len(ward.told(job, "Repaired")) == 1


def test_a_block_that_breaks_is_mended_in_its_superpod_or_moves_as_a_whole(
    ward: Ward,
) -> None:
    """There is room in the SuperPoD for the first fault, and none for the second."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    blocks = {"annotations": BLOCKS, "selector": A3}
    first = ward.run("train", 4, 16, SINGLE, **blocks)
    sick = node_of(first[1])
    ward.fail_chips(sick, [5])
    second = ward.wait_for_others("train", first[1:2])

    assert places(second[:1] + second[2:]) == places(first[:1] + first[2:])
    assert node_of(second[1]) != sick
    assert superpod_of(node_of(second[1])) == superpod_of(sick)
    assert ward.deleted() == names("train", 1)

    rest = {f"a3-{n}" for n in range(22, 26)} - {sick, *map(node_of, second)}
    here = A3 | {"kubernetes.io/hostname": rest.pop()}
    ward.run("filler", 1, 16, {}, selector=here)
    ward.fail_switch(node_of(second[1]))
    third = ward.wait_for_others("train", second[:2])

    assert places(third[2:]) == places(second[2:])
    assert uids(third[2:]) == uids(first[2:])
    assert {superpod_of(node_of(each)) for each in third[:2]} == {1}
    assert ward.deleted() == names("train", 0, 1, 1)
    assert "NodeUnhealthy" in "".join(ward.told("train", "Faulty"))
    assert "its logical SuperPoD" in "".join(ward.told("train", "Faulty"))


@pytest.mark.parametrize(
    "conf",
    [
        pytest.param(COLLECTED, id="leaf 1.0"),
        pytest.param(DIRECT, id="leaf 2.0, direct reports"),
    ],
)
def test_a_job_across_leaves_keeps_what_is_healthy_of_it(ward: Ward, conf: str) -> None:
    """Also what pods say of their leaves stays, and in SuperPoDs all blocks do."""
    stage = ward.stage
    stage.schedule(conf)
    large = ward.run("large", 6, 8, LARGE | WHOLE)
    blocks = ward.run("blocks", 4, 16, WHOLE, selector=A3, annotations=BLOCKS)
    ward.fail_chips(node_of(large[1]), [0])
    ward.fail_switch(node_of(blocks[2]))
    large_now = ward.wait_for_others("large", large)
    blocks_now = ward.wait_for_others("blocks", blocks)

    healthy = [n for n in range(6) if n != 1]
    assert [place(large_now[n]) for n in healthy] == [place(large[n]) for n in healthy]
    assert [marks_of(large_now)[n] for n in healthy] == [
        marks_of(large)[n] for n in healthy
    ]
    assert node_of(large_now[1]) != node_of(large[1])
    assert [place(blocks_now[n]) for n in (0, 1, 3)] == [
        place(blocks[n]) for n in (0, 1, 3)
    ]
    assert node_of(blocks_now[2]) != node_of(blocks[2])
    assert superpod_of(node_of(blocks_now[2])) == superpod_of(node_of(blocks[2]))
    wanted = names("large", *range(6)) + names("blocks", *range(4))
    assert ward.deleted() == sorted(wanted)


def test_a_job_that_finds_no_place_under_its_leaf_moves_as_a_whole(ward: Ward) -> None:
    """After a while; its pod alone waits until then."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    padding = ward.run("padding", 3, 8, LARGE | SINGLE)
    leaf = leaf_of(node_of(padding[0]))
    (rest,) = {
        each.name for each in stage.leaf_machines if leaf_of(each.name) == leaf
    } - {node_of(each) for each in padding}
    ward.run("filler", 1, 8, {}, selector=A2 | on(rest))
    ward.fail_chips(node_of(padding[1]), [0])
    now = ward.wait_for_others("padding", padding)

    (other,) = {leaf_of(node_of(each)) for each in now}
    assert other != leaf
    assert ward.deleted() == names("padding", 0, 1, 2)
    assert node_of(stage.pods("filler")[0]) == rest


def test_a_node_that_is_lost_and_one_that_is_gone(ward: Ward) -> None:
    """Pods there are deleted at once, though their job would give them time."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    grace = {"fault-scheduling": "grace"}
    lost = ward.run("lost", 2, 8, grace)
    gone = ward.run("gone", 2, 8, grace | {"pod-rescheduling": "on"})

    ward.lose_node(node_of(lost[1]))
    machine = ward.actor.remove_node(node_of(gone[1]))
    try:
        lost_now = ward.wait_for_others("lost", lost)
        gone_now = ward.wait_for_others("gone", gone[1:])
    finally:
        ward.actor.add_machines([machine])

    assert place(lost_now[0]) == place(lost[0])
    assert node_of(lost_now[1]) != node_of(lost[1])
    assert uids(gone_now[:1]) == uids(gone[:1])
    assert node_of(gone_now[1]) != node_of(gone[1])
    assert ward.deleted() == sorted(names("lost", 0, 1) + names("gone", 1))
    assert "NodeUnhealthy" in ward.told("lost", "Faulty")[0]
    assert "NodeUnhealthy" in ward.told("gone", "Faulty")[0]


def test_all_nodes_of_a_leaf_are_unhealthy_at_once(ward: Ward) -> None:
    """A padding job leaves its leaf as a whole; a job across leaves keeps the rest."""
    stage = ward.stage
    stage.schedule(COLLECTED_2)
    padding = ward.run("padding", 2, 8, LARGE | WHOLE)
    leaf = leaf_of(node_of(padding[0]))
    nodes = [each.name for each in stage.leaf_machines]
    ward.fail_nodes_at_once([node for node in nodes if leaf_of(node) == leaf])
    now = ward.wait_for_others("padding", padding)

    (other,) = {leaf_of(node_of(each)) for each in now}
    assert other != leaf
    assert ward.deleted() == names("padding", 0, 1)


def test_who_is_not_to_be_deleted_by_us_is_not(ward: Ward) -> None:
    """Jobs that say nothing stay; faulty pods of others are pointed out."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    plain = ward.run("plain", 2, 8, {})
    pointed = ward.run("pointed", 2, 8, {"fault-scheduling": "external-grace"})
    for pods in (plain, pointed):
        ward.fail_chips(node_of(pods[1]), [3])

    stage.wait(
        lambda: notes_of(stage.pods("pointed")[1]).get("huawei.com/pod-status"),
        "the faulty pod to be pointed out",
    )
    now = stage.pods("pointed")
    status = [notes_of(each).get("huawei.com/pod-status") for each in now]
    assert status == [None, "Unhealthy-CardUnhealthy"]
    assert uids(now) == uids(pointed)
    assert uids(stage.pods("plain")) == uids(plain)
    assert ward.deleted() == []

    stage.bed.client.ask("DELETE", stage.pod_path("pointed-worker-1"))
    after = ward.wait_for_others("pointed", pointed[1:])
    assert uids(after[:1]) == uids(pointed[:1])
    assert node_of(after[1]) != node_of(pointed[1])
    assert ward.deleted() == []


def test_what_does_not_end_in_time_is_deleted_at_once(ward: Ward) -> None:
    """Another chip fails while the job is repaired: both pods go elsewhere."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    pods = ward.run("train", 4, 8, {"fault-scheduling": "grace"})
    for each in pods:
        ward.hold(each)
    ward.fail_chips(node_of(pods[1]), [0])
    stage.wait(
        lambda: [p["metadata"].get("deletionTimestamp") for p in stage.pods("train")],
        "the pods to be asked to end",
    )
    ward.fail_chips(node_of(pods[2]), [7])
    stage.create(pod("rival", 8, selector=A2 | on(node_of(pods[0]))))
    stage.wait_for_condition("rival", "too few free chips")
    stage.wait(
        lambda: any(
            "did not end within 2 s" in e for e in ward.told("train", "Faulty")
        ),
        "the pods to be deleted at once",
    )
    assert uids(stage.pods("train")) == uids(pods)
    ward.drop_hold()
    now = ward.wait_for_others("train", pods)

    assert places(now[::3]) == places(pods[::3])
    assert node_of(stage.pod("rival")) == ""  # the places were held
    sick = {node_of(each) for each in pods[1:3]}
    assert sick.isdisjoint(node_of(each) for each in now)
    assert ward.deleted() == sorted(2 * names("train", 0, 1, 2, 3))


def test_a_chip_that_recovers_is_used_again(ward: Ward) -> None:
    """Before the pod is gone: its successor returns. After: nobody moves back."""
    stage = ward.stage
    stage.schedule(COLLECTED)
    soon = ward.run("soon", 2, 8, SINGLE)
    late = ward.run("late", 2, 8, SINGLE)
    ward.hold(soon[1])
    for pods in (soon, late):
        ward.fail_chips(node_of(pods[1]), [2])
    moved = ward.wait_for_others("late", late[1:])
    stage.wait(
        lambda: stage.pods("soon")[1]["metadata"].get("deletionTimestamp"),
        "the faulty pod to be deleted",
    )
    for pods in (soon, late):
        ward.actor.recover_chips(node_of(pods[1]))
    ward.drop_hold()
    back = ward.wait_for_others("soon", soon[1:])

    assert places(back) == places(soon)
    (next_one,) = ward.run("next", 1, 8, {}, selector=A2 | on(node_of(late[1])))
    assert place(next_one) == place(late[1])
    assert uids(stage.pods("late")) == uids(moved)
    assert ward.deleted() == sorted(names("soon", 1) + names("late", 1))
