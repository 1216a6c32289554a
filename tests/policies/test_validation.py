"""Which requests are legal, and what is said about those that are not."""

from typing import Final

import pytest
from msgspec.structs import replace

from ringleaf.model.decision import Invalid
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Firmness, Schema
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.products import NO_NPU, PRODUCTS
from ringleaf.policies.validation import (
    in_words,
    is_legal,
    legal_words,
    validate,
    warnings_of,
)
from tests.chips import PER_POD, a_job

STRICT: Final = Settings()
EVEN: Final = {2, 4, 6, 8, 10, 12, 14, 16}
BOX16: Final = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}

NINE_THOUSAND: Final = (
    "atlas-800-9000 takes 1, 2, 4 or 8 chips in one pod, or 8 in each of several"
)
A3: Final = (
    "takes 1, 2, 4, 6, 8, 10, 12, 14 or 16 chips in one pod, "
    "or 2, 4, 6, 8, 10, 12, 14 or 16 in each of several"
)


@pytest.mark.parametrize(
    ("product", "strategy", "one_pod", "several"),
    [
        pytest.param(
            "atlas-800-9000",
            None,
            {1, 2, 4, 8},
            {8},
            id="9000: one pod, or whole nodes",
        ),
        pytest.param(
            "atlas-800-9000-half", None, {1, 2, 4}, {1, 2, 4}, id="half: 3 is illegal"
        ),
        pytest.param("atlas-300t", None, {1, 2}, {1, 2}, id="300T: 1 or 2"),
        pytest.param(
            "atlas-800t-a2", None, {*range(1, 9)}, {*range(1, 9)}, id="A2: 1 to 8"
        ),
        pytest.param(
            "atlas-200t-a2-box16", None, BOX16, BOX16, id="Box16: even above eight"
        ),
        pytest.param("atlas-800t-a3", None, EVEN | {1}, EVEN, id="A3: 1 comes alone"),
        pytest.param("a200t-a3-box8", None, EVEN | {1}, EVEN, id="Box8: as A3"),
        pytest.param(
            "atlas-900-a3", None, EVEN | {1}, {16}, id="SuperPoD: several take nodes"
        ),
        pytest.param(
            "atlas-9000-a3", None, {1, 2, 4, 6, 8}, {8}, id="SuperPoD of 8: as well"
        ),
        pytest.param(
            "atlas-300i", "card", {1, 2, 3, 4}, {1, 2, 3, 4}, id="300I card (D9)"
        ),
        pytest.param(
            "atlas-300i", "chip", {*range(1, 65)}, {*range(1, 65)}, id="300I chip"
        ),
        pytest.param("atlas-300i-duo", "card", {1, 2}, {1, 2}, id="Duo card (D9)"),
        pytest.param(
            "atlas-300i-duo", "chip", {*range(1, 17)}, {*range(1, 17)}, id="Duo chip"
        ),
        pytest.param(
            "atlas-310p", None, {*range(1, 65)}, {*range(1, 65)}, id="310P: 1 to 64"
        ),
        pytest.param(
            "atlas-350-4p-8", None, {*range(1, 9)}, {*range(1, 9)}, id="350 of 8"
        ),
        pytest.param(
            "atlas-350-4p-16", None, {*range(1, 17)}, {*range(1, 17)}, id="350 of 16"
        ),
    ],
)
def test_these_requests_are_legal_and_no_others(
    product: str, strategy: str | None, one_pod: set[int], several: set[int]
) -> None:
    asked = range(70)

    for pods, legal in ((1, one_pod), (2, several), (5, several)):
        jobs = [a_job(product, n, pods=pods, strategy=strategy) for n in asked]
        assert {job.chips for job in jobs if is_legal(job, STRICT)} == legal
        assert {job.chips for job in jobs if validate(job, STRICT) is None} == legal


def test_distributed_inference_on_duo_is_one_pod() -> None:
    jobs = [a_job("atlas-300i-duo", n, distributed=True) for n in range(40)]
    several = [a_job("atlas-300i-duo", n, pods=2, distributed=True) for n in range(40)]

    assert {j.chips for j in jobs if is_legal(j, STRICT)} == {*range(1, 17)}
    assert not [job for job in several if is_legal(job, STRICT)]


@pytest.mark.parametrize(
    "product", ["atlas-800t-a3", "a200t-a3-box8", "atlas-900-a3", "atlas-9000-a3"]
)
def test_the_setting_per_pod_lifts_nothing_but_the_rule_of_model_9000(
    product: str,
) -> None:
    assert not is_legal(a_job(product, 1, pods=2), PER_POD)
    assert is_legal(a_job("atlas-800-9000", 1, pods=2), PER_POD)


@pytest.mark.parametrize(
    ("job", "settings", "problem", "hint"),
    [
        pytest.param(
            a_job("atlas-800-9000", 3),
            STRICT,
            "3 chips in one pod are never wired together on atlas-800-9000",
            f"ask for 1 x 4 chips; {NINE_THOUSAND}",
            id="three: four is nearest",
        ),
        pytest.param(
            a_job("atlas-800-9000", 5),
            STRICT,
            "5 chips in one pod are never wired together on atlas-800-9000",
            f"ask for 1 x 4 chips (or 1 x 8 chips to hold all 5); {NINE_THOUSAND}",
            id="five: four is nearest, eight holds it",
        ),
        pytest.param(
            a_job("atlas-800-9000", 6),
            STRICT,
            "6 chips in one pod are never wired together on atlas-800-9000",
            f"ask for 1 x 8 chips; {NINE_THOUSAND}",
            id="six: of two as near, the larger",
        ),
        pytest.param(
            a_job("atlas-800-9000", 12),
            STRICT,
            "12 chips in one pod are more than the 8 of atlas-800-9000",
            f"ask for 2 x 8 chips; {NINE_THOUSAND}",
            id="twelve: two nodes",
        ),
        pytest.param(
            a_job("atlas-800-9000", 9),
            STRICT,
            "9 chips in one pod are more than the 8 of atlas-800-9000",
            f"ask for 1 x 8 chips (or 2 x 8 chips to hold all 9); {NINE_THOUSAND}",
            id="nine: one node is nearest, two hold it",
        ),
        pytest.param(
            a_job("atlas-800-9000", 3, pods=3),
            STRICT,
            "3 chips in one pod are never wired together on atlas-800-9000",
            f"ask for 1 x 8 chips (or 2 x 8 chips to hold all 9); {NINE_THOUSAND}",
            id="three of three: of those that hold it, the nearest",
        ),
        pytest.param(
            a_job("atlas-800-9000", 4, pods=2),
            STRICT,
            "2 x 4 chips: only a job of one pod may ask for 4 on atlas-800-9000, "
            "a job of several pods asks for more in each",
            f"ask for 1 x 8 chips; {NINE_THOUSAND}; job-requests: per-pod allows it",
            id="two of four: one of eight",
        ),
        pytest.param(
            a_job("atlas-800-9000", 4, pods=4),
            STRICT,
            "4 x 4 chips: only a job of one pod may ask for 4 on atlas-800-9000, "
            "a job of several pods asks for more in each",
            f"ask for 2 x 8 chips; {NINE_THOUSAND}; job-requests: per-pod allows it",
            id="four of four: two of eight",
        ),
        pytest.param(
            a_job("atlas-800-9000", 5, pods=5),
            STRICT,
            "5 chips in one pod are never wired together on atlas-800-9000",
            f"ask for 4 x 8 chips; {NINE_THOUSAND}",
            id="five of five: four nodes",
        ),
        pytest.param(
            a_job("atlas-800-9000", 0, pods=3),
            STRICT,
            "0 chips in one pod, want at least 1",
            f"ask for 1 x 1 chips; {NINE_THOUSAND}",
            id="none: one",
        ),
        pytest.param(
            a_job("atlas-800-9000", 6, pods=2),
            PER_POD,
            "6 chips in one pod are never wired together on atlas-800-9000",
            "ask for 3 x 4 chips; atlas-800-9000 takes 1, 2, 4 or 8 chips in each pod",
            id="two of six, per pod: three of four",
        ),
        pytest.param(
            a_job("atlas-800-9000-half", 8),
            STRICT,
            "8 chips in one pod are more than the 4 of atlas-800-9000-half",
            "ask for 2 x 4 chips; atlas-800-9000-half takes 1, 2 or 4 chips "
            "in each pod",
            id="half, eight: two nodes",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 16),
            STRICT,
            "16 chips in one pod are more than the 8 of atlas-800t-a2",
            "ask for 2 x 8 chips; atlas-800t-a2 takes 1 to 8 chips in each pod",
            id="A2, sixteen: two nodes",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 15, pods=2),
            STRICT,
            "15 chips in one pod are never wired together on atlas-200t-a2-box16",
            "ask for 3 x 10 chips; atlas-200t-a2-box16 takes 1 to 8, 10, 12, 14 or 16 "
            "chips in each pod",
            id="Box16, two of fifteen: three of ten",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 3),
            STRICT,
            "3 chips in one pod are never wired together on atlas-800t-a3",
            f"ask for 1 x 4 chips; atlas-800t-a3 {A3}",
            id="A3, three: two modules",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 1, pods=2),
            STRICT,
            "2 x 1 chips: only a job of one pod may ask for 1 on atlas-800t-a3, "
            "a job of several pods asks for more in each",
            f"ask for 1 x 2 chips; atlas-800t-a3 {A3}",
            id="A3, two of one: one module",
        ),
        pytest.param(
            a_job("atlas-900-a3", 14, pods=3),
            STRICT,
            "3 x 14 chips: only a job of one pod may ask for 14 on atlas-900-a3, "
            "a job of several pods asks for more in each",
            "ask for 3 x 16 chips; atlas-900-a3 takes "
            "1, 2, 4, 6, 8, 10, 12, 14 or 16 chips in one pod, "
            "or 16 in each of several",
            id="SuperPoD, three of fourteen: three nodes",
        ),
        pytest.param(
            a_job("atlas-9000-a3", 10),
            STRICT,
            "10 chips in one pod are more than the 8 of atlas-9000-a3",
            "ask for 1 x 8 chips (or 2 x 8 chips to hold all 10); "
            "atlas-9000-a3 takes 1, 2, 4, 6 or 8 chips in one pod, "
            "or 8 in each of several",
            id="SuperPoD of 8, ten: one node is nearest, two hold it",
        ),
        pytest.param(
            a_job("atlas-300i", 8, strategy="card"),
            STRICT,
            "8 chips in one pod never fit one card of 4 on atlas-300i",
            "ask for 2 x 4 chips; atlas-300i takes 1 to 4 chips in each pod",
            id="300I card, eight: two cards (D9)",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 4, strategy="card"),
            STRICT,
            "4 chips in one pod never fit one card of 2 on atlas-300i-duo",
            "ask for 2 x 2 chips; atlas-300i-duo takes 1 or 2 chips in each pod",
            id="Duo card, four: two cards (D9)",
        ),
        pytest.param(
            a_job("atlas-300i", 128),
            STRICT,
            "128 chips in one pod are more than the 64 of atlas-300i",
            "ask for 2 x 64 chips; atlas-300i takes 1 to 64 chips in each pod",
            id="300I chip, 128: two nodes",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 2, pods=3, distributed=True),
            STRICT,
            "distributed inference on atlas-300i-duo is one pod, not 3",
            "ask for 1 x 6 chips; atlas-300i-duo takes 1 to 16 chips in one pod",
            id="Duo distributed, three of two: one of six",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 8, pods=3, distributed=True),
            STRICT,
            "distributed inference on atlas-300i-duo is one pod, not 3",
            "ask for 1 x 16 chips; atlas-300i-duo takes 1 to 16 chips in one pod",
            id="Duo distributed, 24 in all: nothing legal holds it",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 2, pods=2, strategy="card", distributed=True),
            STRICT,
            "distributed inference on atlas-300i-duo is one pod, not 2",
            "ask for 1 x 2 chips; atlas-300i-duo takes 1 or 2 chips in one pod",
            id="Duo distributed by card",
        ),
    ],
)
def test_an_illegal_request_gets_the_problem_and_the_nearest_legal_request(
    job: Job, settings: Settings, problem: str, hint: str
) -> None:
    never = validate(job, settings)

    assert isinstance(never, Invalid)
    assert never.job is job
    assert never.problem == problem
    assert never.hint == hint
    assert never.message == f"job 'j' is invalid: {problem}"


@pytest.mark.parametrize("settings", [STRICT, PER_POD], ids=["strict", "per-pod"])
@pytest.mark.parametrize(
    "product",
    ["atlas-800-9000", "atlas-200t-a2-box16", "atlas-900-a3", "atlas-9000-a3"],
)
def test_the_request_that_is_named_is_legal(product: str, settings: Settings) -> None:
    for pods in range(1, 6):
        for chips in range(40):
            never = validate(a_job(product, chips, pods=pods), settings)
            if never is None:
                continue
            words = never.hint.removeprefix("ask for ").split()
            nearest = a_job(product, int(words[2]), pods=int(words[0]))
            assert is_legal(nearest, settings), never.hint


@pytest.mark.parametrize(
    ("job", "settings", "words"),
    [
        (a_job("atlas-800-9000", 1), STRICT, NINE_THOUSAND),
        (
            a_job("atlas-800-9000", 1),
            PER_POD,
            "atlas-800-9000 takes 1, 2, 4 or 8 chips in each pod",
        ),
        (
            a_job("atlas-300i-duo", 1),
            STRICT,
            "atlas-300i-duo takes 1 to 16 chips in each pod",
        ),
        (
            a_job("atlas-300i-duo", 1, distributed=True),
            STRICT,
            "atlas-300i-duo takes 1 to 16 chips in one pod",
        ),
        (
            a_job("atlas-300i", 1, distributed=True),
            STRICT,
            "atlas-300i takes 1 to 64 chips in each pod",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_legal_requests_in_words(job: Job, settings: Settings, words: str) -> None:
    assert legal_words(job, settings) == words


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([5], "5"),
        ([1, 2], "1 or 2"),
        ([1, 2, 3], "1 to 3"),
        ([1, 2, 4], "1, 2 or 4"),
        ([1, 2, 4, 8], "1, 2, 4 or 8"),
        ([1, 2, 3, 5, 7, 8, 9], "1 to 3, 5 or 7 to 9"),
    ],
    ids=str,
)
def test_numbers_as_people_write_them(numbers: list[int], words: str) -> None:
    assert in_words(numbers) == words


NOT_NAMED: Final = (
    "the vendor names no switch affinity 2.0 for atlas-800-9000; "
    "it is placed by the same rule"
)


def a3(pods: int, block: int | None, chips: int = 16, key: str = "atlas-900-a3") -> Job:
    """A job in SuperPoDs."""
    return Job("j", PRODUCTS[key], chips, pods, sp_block=block)


@pytest.mark.parametrize(
    ("job", "problem", "hint"),
    [
        pytest.param(
            a3(1, 16, 8, "atlas-800t-a2"),
            "sp-block is 16, but atlas-800t-a2 has no logical SuperPoDs",
            (
                "leave sp-block out; it is for atlas-800t-a3, atlas-900-a3, "
                "a200t-a3-box8, atlas-9000-a3"
            ),
            id="no SuperPoDs",
        ),
        pytest.param(
            a3(4, 0),
            "sp-block is 0, want a multiple of the 16 chips of a node",
            "sp-block: 16 is the nearest that fits, 1 node a block",
            id="nothing",
        ),
        pytest.param(
            a3(4, 24),
            "sp-block is 24, want a multiple of the 16 chips of a node",
            "sp-block: 16 is the nearest that fits, 1 node a block",
            id="half a node",
        ),
        pytest.param(
            a3(4, 8),
            "sp-block is 8, want a multiple of the 16 chips of a node",
            "sp-block: 16 is the nearest that fits, 1 node a block",
            id="less than a node",
        ),
        pytest.param(
            a3(6, 64),
            "sp-block is 64, which does not divide the 96 chips of the job",
            "sp-block: 48 is the nearest that fits, 3 nodes a block",
            id="does not divide",
        ),
        pytest.param(
            a3(1, 32),
            "sp-block is 32, a job of one pod is one block of its 16 chips",
            "sp-block: 16 is the nearest that fits, 1 node a block",
            id="one pod, two nodes",
        ),
        pytest.param(
            a3(100, 800),
            "50 nodes, more than a SuperPoD of 48 (super-pod-size)",
            "sp-block: 400 is the nearest that fits, 25 nodes a block",
            id="larger than a SuperPoD",
        ),
        pytest.param(
            a3(50, None),
            (
                "without sp-block the job is one block: 50 nodes, "
                "more than a SuperPoD of 48 (super-pod-size)"
            ),
            "sp-block: 400 is the nearest that fits, 25 nodes a block",
            id="a whole job that is larger",
        ),
        pytest.param(
            a3(2, 16, 8, "atlas-800t-a3"),
            (
                "2 x 8 chips: a job of several pods in SuperPoDs takes whole nodes, "
                "16 chips in each pod"
            ),
            "ask for 2 x 16 chips",
            id="parts of nodes",
        ),
    ],
)
def test_a_block_that_cannot_be_is_refused_with_the_nearest_that_can(
    job: Job, problem: str, hint: str
) -> None:
    found = validate(job, Settings())

    assert found is not None
    assert (found.problem, found.hint) == (problem, hint)
    assert not is_legal(job, Settings())


@pytest.mark.parametrize(
    "job",
    [
        a3(4, 32),
        a3(4, None),
        a3(48, None),
        a3(1, 16),
        a3(1, 8, 8),
        a3(1, None, 2),
        a3(2, 32, 16, "atlas-800t-a3"),
        a3(2, 8, 8, "atlas-9000-a3"),
    ],
    ids=lambda job: f"{job.product.key}, {job.wanted}, {job.sp_block}",
)
def test_a_block_that_can_be_is_admitted(job: Job) -> None:
    assert validate(job, Settings()) is None


@pytest.mark.parametrize(
    ("job", "ended"),
    [
        pytest.param(a3(3, 32), 1, id="one pod of four"),
        pytest.param(a3(2, 64), 2, id="two pods of one block"),
        pytest.param(a3(1, 32), 3, id="all but one pod"),
        pytest.param(a3(4, 64), 1, id="another pod came for the one that ended"),
        pytest.param(a3(1, 8, 8), 4, id="one small pod after the other"),
        pytest.param(a3(3, None), 1, id="without sp-block"),
        pytest.param(a3(1, None, 8), 1, id="small pods without sp-block"),
        pytest.param(a3(1, 32, 16, "atlas-800t-a3"), 1, id="the other product"),
        pytest.param(Job("j", PRODUCTS["atlas-800-9000"], 8), 1, id="D1: of 2 x 8"),
        pytest.param(Job("j", PRODUCTS["atlas-800-9000"], 4), 1, id="D1: 4, 4 again"),
    ],
)
def test_a_legal_job_stays_legal_when_pods_have_ended_well(
    job: Job, ended: int
) -> None:
    finished = tuple(range(100, 100 + ended))
    ranks = tuple(range(1, job.replicas + 1))
    left = (Role("", job.chips, job.replicas, ranks=ranks),)

    assert validate(replace(job, finished=finished), Settings()) is None
    assert validate(replace(job, finished=finished, roles=left), Settings()) is None


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (a3(3, 32), "sp-block is 32, which does not divide the 48 chips of the job"),
        (a3(1, 32), "sp-block is 32, a job of one pod is one block of its 16 chips"),
    ],
)
def test_pods_that_have_not_ended_fill_no_block(job: Job, problem: str) -> None:
    found = validate(job, Settings())

    assert found is not None
    assert found.problem == problem


def test_too_few_pods_have_ended_to_fill_a_block() -> None:
    found = validate(replace(a3(1, 48), finished=(0,)), Settings())

    assert found is not None
    assert "does not divide the 16 chips" in found.problem
    assert found.hint == "sp-block: 16 is the nearest that fits, 1 node a block"


@pytest.mark.parametrize(
    ("affinity", "problem", "hint"),
    [
        (
            None,
            "virtual NPU 'vir04': parts of chips are not placed",
            "ask for whole chips",
        ),
        (
            Schema.NORMAL,
            "virtual NPU 'vir04' with tor-affinity, which is for whole chips",
            "ask for whole chips",
        ),
    ],
    ids=["alone", "with tor-affinity"],
)
def test_a_virtual_npu_is_invalid(
    affinity: Schema | None, problem: str, hint: str
) -> None:
    job = Job("j", PRODUCTS["atlas-800t-a2"], 1, vnpu="vir04", tor_affinity=affinity)

    found = validate(job, Settings())

    assert found is not None
    assert (found.problem, found.hint) == (problem, hint)


def test_the_hint_for_a_wrong_request_forgets_the_block() -> None:
    found = validate(a3(1, 3, 3), Settings())

    assert found is not None
    assert found.hint.startswith("ask for 1 x 4 chips")


@pytest.mark.parametrize(
    ("job", "settings", "warnings"),
    [
        pytest.param(
            replace(a3(2, 32), tor_affinity=Schema.NORMAL),
            Settings(),
            ("tor-affinity has no effect: the SuperPoD rule places this job",),
            id="both networks",
        ),
        pytest.param(
            replace(a_job("atlas-800t-a2", 8), superpod_affinity=Firmness.SOFT),
            Settings(),
            ("super-pod-affinity has no effect on atlas-800t-a2",),
            id="soft without SuperPoDs",
        ),
        pytest.param(
            replace(a_job("atlas-800-9000", 8), tor_affinity=Schema.NORMAL),
            Settings(switch_mode=SwitchMode.SPINE_LEAF_2),
            (NOT_NAMED,),
            id="a mode the vendor does not name",
        ),
        pytest.param(
            replace(a_job("atlas-800t-a2", 8), tor_affinity=Schema.NORMAL),
            Settings(switch_mode=SwitchMode.SPINE_LEAF_2),
            (),
            id="a mode the vendor names",
        ),
    ],
)
def test_what_has_no_effect_in_the_network_is_warned_of(
    job: Job, settings: Settings, warnings: tuple[str, ...]
) -> None:
    assert warnings_of(job, settings) == warnings


def team(*roles: Role, product: str = "atlas-800t-a2", chips: int = 8) -> Job:
    """A job of these roles, placed by no network rule."""
    replicas = sum(role.replicas for role in roles if role.chips)
    return replace(a_job(product, chips, pods=replicas), roles=roles)


EAST: Final = Demand(required=(Requirement("zone", Operator.IN, ("east",)),))
CPU: Final = Demand(resources=(("cpu", 4),))


@pytest.mark.parametrize(
    "job",
    [
        team(Role("master", 1), Role("worker", 8, 3), Role("driver", 0)),
        team(Role("driver", 0, 2), chips=0),
        replace(team(Role("driver", 0, 2), chips=0), product=NO_NPU),
        replace(
            team(Role("a", 8), Role("b", 8, demand=CPU)), tor_affinity=Schema.NORMAL
        ),
        team(Role("a", 8, 2, ranks=(3, 5)), Role("b", 8)),
        team(Role("a", 16, 2), Role("d", 0), product="atlas-900-a3", chips=16),
    ],
    ids=["mixed", "no chips", "no NPU", "one set", "ranks", "SuperPoD"],
)
def test_roles_that_are_legal(job: Job) -> None:
    assert validate(job, STRICT) is None
    assert is_legal(job, STRICT)


IN_SUPERPODS: Final = "but the SuperPoD rule places identical pods"
SWITCHED: Final = "but switch affinity places identical pods"


@pytest.mark.parametrize(
    ("job", "problem", "hint"),
    [
        (
            team(Role("worker", 8), Role("master", 9)),
            "role 'master': 9 chips in one pod are more than the 8 of atlas-800t-a2",
            "atlas-800t-a2 takes 1 to 8 chips in each pod",
        ),
        (
            replace(team(Role("a", 8), Role("b", 4)), tor_affinity=Schema.NORMAL),
            f"roles 'a' and 'b' ask for 8 and 4 chips in one pod, {SWITCHED}",
            "ask for 8 chips in every pod that has any",
        ),
        (
            replace(
                team(Role("a", 8), Role("d", 0), Role("b", 8, demand=EAST)),
                tor_affinity=Schema.NORMAL,
            ),
            f"roles 'a' and 'b' select different nodes, {SWITCHED}",
            "select the same nodes for all pods with chips",
        ),
        (
            replace(
                team(Role("a", 8), Role("b", 16), product="atlas-800t-a3", chips=16),
                sp_block=16,
            ),
            f"roles 'a' and 'b' ask for 8 and 16 chips in one pod, {IN_SUPERPODS}",
            "ask for 8 chips in every pod that has any",
        ),
        (
            team(Role("a", 8, 2, ranks=(1,))),
            "role 'a' has 1 rank for 2 pods",
            "give every pod a rank of its own, or none of them",
        ),
        (
            team(Role("a", 8, 2, ranks=(1, 2)), Role("b", 8, ranks=(2,))),
            "rank 2 is given twice",
            "give every pod a rank of its own",
        ),
        (
            replace(team(Role("d", 0), Role("a", 8)), product=NO_NPU),
            "role 'a': 8 chips in one pod, but no-npu nodes have none",
            "no-npu is for roles without chips; name another product",
        ),
        (
            replace(team(Role("a", 8)), vnpu="vir04"),
            "virtual NPU 'vir04': parts of chips are not placed",
            "ask for whole chips",
        ),
    ],
    ids=["chips", "differ", "select", "SuperPoD", "few", "twice", "no NPU", "vNPU"],
)
def test_roles_that_are_not_legal(job: Job, problem: str, hint: str) -> None:
    never = validate(job, STRICT)

    assert isinstance(never, Invalid)
    assert (never.problem, never.hint) == (problem, hint)
    assert not is_legal(job, STRICT)


@pytest.mark.parametrize("chips", [0, 8])
def test_a_node_without_npus_has_no_legal_request(chips: int) -> None:
    never = validate(Job("j", NO_NPU, chips), STRICT)

    assert isinstance(never, Invalid)
    assert never.hint == "no-npu is for roles without chips; name another product"
    assert not is_legal(Job("j", NO_NPU, chips), STRICT)
