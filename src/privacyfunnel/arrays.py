"""The array types that the rooms share, and how to freeze one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """`array` as a read-only view, so that a value object stays the value it was."""
    view = array.view()
    view.flags.writeable = False
    return view
