"""The voters that Ringleaf brings, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ringleaf.framework.plugin import Plugin
from ringleaf.plugins.affinity import Affinity
from ringleaf.plugins.binpack import Binpack
from ringleaf.plugins.conformance import Conformance
from ringleaf.plugins.drf import Drf
from ringleaf.plugins.gang import Gang
from ringleaf.plugins.nodeorder import NodeOrder
from ringleaf.plugins.overcommit import Overcommit
from ringleaf.plugins.predicates import Predicates
from ringleaf.plugins.priority import Priority
from ringleaf.plugins.proportion import Proportion

PLUGINS: Final[Mapping[str, type[Plugin]]] = MappingProxyType(
    {
        "priority": Priority,
        "gang": Gang,
        "conformance": Conformance,
        "affinity": Affinity,
        "drf": Drf,
        "overcommit": Overcommit,
        "predicates": Predicates,
        "proportion": Proportion,
        "nodeorder": NodeOrder,
        "binpack": Binpack,
    }
)
"""Name in the configuration → class."""
