"""The commands, a module for each group of the help, in its order.

They import what they need when they are called, so that the help stays fast.
"""

from ringleaf.cli.commands import explore, live, service, study, tools

__all__ = ["explore", "live", "service", "study", "tools"]
