"""The command line inside this process: what a process of its own would print.

A fresh interpreter takes longer to start than most commands take to answer. Tests of
the process itself, its streams and its signals, start one all the same.
"""

import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from subprocess import CompletedProcess
from types import MappingProxyType
from unittest.mock import patch

from ringleaf.cli.main import run


def run_inside(
    *arguments: str,
    stdin: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> "CompletedProcess[str]":
    """Call ``ringleaf`` with *arguments*; gives its status and what it printed."""
    out, err = _stream(), _stream()
    with (
        patch.object(sys, "argv", ["ringleaf", *arguments]),
        patch.object(sys, "stdin", TextIOWrapper(BytesIO(stdin.encode()))),
        patch.dict("os.environ", environment),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(bool(left.code))
    return CompletedProcess(arguments, status, _text(out), _text(err))


def _stream() -> TextIOWrapper:
    return TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
