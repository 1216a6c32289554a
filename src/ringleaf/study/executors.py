"""Plays the runs: in this process, in several of this machine, or on a Dask cluster.

All of them give the same results. The caller gets them as they come, with the place of
the run in the list.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import active_children, get_context
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from typing import Any, Final, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

NO_DASK: Final = "--dask needs the extra dask; hint: pip install 'ringleaf[dask]'"


class ExecutorUnavailable(ValueError):  # noqa: N818 - what was found, not an error of ours
    """The runs cannot be simulated; the text is one line."""


def one_by_one(
    play: Callable[[Asked], Answer], asked: Sequence[Asked]
) -> Iterator[tuple[int, Answer]]:
    """Play every run here, in order."""
    for place, each in enumerate(asked):
        yield place, play(each)


def in_processes(
    play: Callable[[Asked], Answer], asked: Sequence[Asked], workers: int
) -> Iterator[tuple[int, Answer]]:
    """Play the runs in so many processes; closing the iterator ends them.

    They are started anew, not forked: nothing of this process matters to them. They do
    not see Ctrl-C, which this process does: it ends them at once, as nothing of a run
    that is not over is kept.
    """
    fresh = get_context("spawn")
    before = active_children()
    with ProcessPoolExecutor(min(workers, len(asked)), mp_context=fresh) as pool:
        with _without_ctrl_c():  # what is started now inherits that
            places = {pool.submit(play, each): n for n, each in enumerate(asked)}
        try:
            for done in as_completed(places):
                yield places[done], done.result()
        except BaseException:
            for worker in active_children():
                if worker not in before:
                    worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    before = pthread_sigmask(SIG_BLOCK, {SIGINT})
    try:
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)


def on_dask(
    play: Callable[[Asked], Answer],
    asked: Sequence[Asked],
    address: str,
    patience_s: float = 10.0,
) -> Iterator[tuple[int, Answer]]:
    """Play the runs on the Dask cluster whose scheduler is at *address*.

    Raises:
        NoCrew: Dask is not installed, or no scheduler answers there.

    """
    try:
        dask: Any = import_module("distributed")
    except ImportError as error:
        raise ExecutorUnavailable(NO_DASK) from error
    try:
        client = dask.Client(address, timeout=patience_s, set_as_default=False)
    except (OSError, ValueError) as error:
        hint = "hint: the address that dask scheduler prints, tcp://HOST:8786"
        raise ExecutorUnavailable(
            f"no Dask scheduler answers at {address!r}; {hint}"
        ) from error
    with client, client.as_current():
        futures = client.map(play, asked, pure=False)
        places = {future.key: n for n, future in enumerate(futures)}
        for done in dask.as_completed(futures):
            yield places[done.key], done.result()
