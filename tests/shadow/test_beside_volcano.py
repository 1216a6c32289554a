"""A shadow beside the real Volcano: every difference is explained, and rightly."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ringleaf.explain.match import AGREES, RULE_WORDS, Agreement
from ringleaf.kube.shadow_results import Finding, ShadowSummary
from tests.shadow.conftest import Beside
from tests.shadow.hindsight import Hindsight, Object, Witness, same_ranks
from tests.shadow.mixed import N_JOBS, leaf_machines, other_machines, waves
from tests.stories.stage import answer_of

RANKS = {"position", "whole", "left", "spare", "healthy-chips", "sub-healthy"}
BROKEN = {"not-wired-together", "superpod-rule", "leaf-rule", "leaf-closed"}


def test_all_jobs_are_judged_and_every_difference_is_explained(beside: Beside) -> None:
    log = beside.folder / "shadow.jsonl"
    with beside.witness() as witness:
        summary = _judge_waves(beside, witness, log)
    findings = [
        msgspec.json.decode(line, type=Finding)
        for line in log.read_bytes().splitlines()
    ]

    # The counts add up, and nothing is unknown.
    assert len(findings) == len({each.job for each in findings}) == N_JOBS
    assert sum(summary.verdicts.values()) == summary.jobs == N_JOBS
    assert summary.verdicts == dict.fromkeys(Agreement, 0) | Counter(
        f.verdict for f in findings
    )
    differ = [each for each in findings if each.verdict not in AGREES]
    assert sum(each.jobs for each in summary.rules) == len(differ)
    assert all(each.rule in RULE_WORDS and each.why for each in differ)
    assert {*summary.differences} == {*differ}
    _are_right(findings, witness.pods)

    # It asked for nothing but to look.
    asked = Counter(each["verb"] for each in beside.asked("shadow"))
    assert asked.keys() == {"list", "watch"}
    assert beside.actor.clashes == beside.actor.failed == []


def _judge_waves(beside: Beside, witness: Witness, log: Path) -> ShadowSummary:
    """Submit all jobs to Volcano, wave by wave; what the shadow then says of them."""
    shadow = beside.start("--shadow-log", str(log))

    def found() -> ShadowSummary:
        return msgspec.convert(answer_of(shadow, "shadow")[1], ShadowSummary)

    submitted = 0
    for wave in waves(seed=1):
        with ThreadPoolExecutor(8) as pool:
            submitted += len(list(pool.map(beside.submit, wave)))
        wanted = submitted
        beside.wait(
            lambda wanted=wanted: found().jobs >= wanted,  # type: ignore[misc]
            f"{wanted} jobs to be judged",
        )
    beside.wait(lambda: witness.has_seen(beside.pods()), "the witness to see as much")
    summary = found()
    beside.stop(shadow)
    return summary


def _are_right(findings: list[Finding], pods: dict[str, Object]) -> None:
    """What the oracles say of every finding."""
    hindsight = Hindsight(leaf_machines(), other_machines())
    checked: Counter[str] = Counter()
    for each in findings:
        cache, job, own = hindsight.look(pods, each)
        legal = hindsight.is_legal(cache, job, own)
        told = f"{each.job}: {each.verdict.value} {each.rule}: {each.why}"
        checked[each.verdict.value] += 1
        if each.verdict is Agreement.RULE:
            assert each.rule in BROKEN, told
            assert not legal, told
            continue
        assert legal, told
        if job.block is not None or job.label is not None:
            if each.verdict is Agreement.TIE:
                ours, theirs = ([p.node for p in s] for s in (each.ours, each.theirs))
                assert same_ranks(cache, job, ours, theirs), told
        elif each.verdict in AGREES:
            assert hindsight.is_best(cache, job, own), told
        elif each.rule in RANKS:
            assert not hindsight.is_best(cache, job, own), told
    assert checked["rule"] > 0, checked
    assert checked["tie"] > 0, checked
    assert checked["better-rank"] > 0, checked
