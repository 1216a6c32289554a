"""What reservations kept idle, in a ConfigMap for the next leader."""

from typing import cast

import pytest
from msgspec.structs import replace

from ringleaf.engine.event import IdleAccountKnown
from ringleaf.framework.idle_budget import (
    MOST_BUCKETS,
    EndedReservation,
    IdleAccount,
    Outcome,
)
from ringleaf.kube.api import Api
from ringleaf.kube.idle_note import IdleNote, account_in
from ringleaf.kube.note_store import BadNote
from ringleaf.kube.scheduler import Options, Scheduler
from tests.kube.stage import Stage

ACCOUNT = IdleAccount(
    ((900.0, 40.5),),
    is_spent=True,
    ended=(EndedReservation("big", 1, 9, 40.5, Outcome.SPENT),),
)


def test_what_is_written_is_read() -> None:
    read: list[IdleAccountKnown] = []
    note = IdleNote(lambda: ACCOUNT, read.append)

    text = note.text()

    assert text is not None
    note.read(text)
    assert read == [IdleAccountKnown(ACCOUNT)]


@pytest.mark.parametrize(
    ("account", "text"), [(None, None), (IdleAccount(), "{}")], ids=["unheard", "none"]
)
def test_nothing_is_written_where_nothing_is_known(
    account: IdleAccount | None, text: str | None
) -> None:
    read: list[IdleAccountKnown] = []
    note = IdleNote(lambda: account, read.append)

    assert note.text() == text
    note.read(note.empty)
    assert not read


BAD = [
    pytest.param("{", id="no JSON"),
    pytest.param("[]", id="no mapping"),
    pytest.param('{"buckets":[["a",1]]}', id="no time"),
    pytest.param('{"buckets":[[900,-1]]}', id="less than nothing"),
    pytest.param('{"buckets":[[1e999,1]]}', id="at no time"),
    pytest.param(
        f'{{"buckets":{[[n, 1] for n in range(MOST_BUCKETS + 1)]}}}', id="many"
    ),
    pytest.param("[" * 100_000, id="too deep"),
]


@pytest.mark.parametrize("text", BAD)
def test_bad_content_is_refused(text: str) -> None:
    with pytest.raises(BadNote):
        account_in(text)


def test_a_scheduler_keeps_both_notes_and_hears_what_was_read() -> None:
    scheduler = Scheduler(cast(Api, None), Options(), lambda _what: None)
    notes = {note.name: note for note in scheduler.notes()}
    assert [*notes] == ["ringleaf-run-times", "ringleaf-idle-time"]
    note = notes["ringleaf-idle-time"]

    note.read('{"buckets":[],"is_spent":true}')

    assert note.text() is None
    scheduler.decider.engine.handle_all(scheduler.decider.news(1.0), 1.0)
    assert note.text() == '{"buckets":[],"is_spent":true,"ended":[]}'


def test_an_engine_that_is_begun_anew_hears_what_the_last_one_knew() -> None:
    stage = Stage("a")
    known = replace(ACCOUNT, buckets=((stage.now, 40.5),), is_spent=False)
    stage.cache.handover.put_note(IdleAccountKnown(known))
    stage.cycle()

    stage.decider.begin_anew()
    stage.cycle()

    assert stage.engine.context.reservations.idle.budget.account == known
