"""``python -m ringleaf`` is the command ``ringleaf``."""

from ringleaf.cli.main import run

run()
