"""Arrays with one entry for each node."""

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

SPARE_ROWS = 64
"""Values of a label, or kinds of taints, that no node has and that may be kept."""
