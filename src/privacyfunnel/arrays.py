"""The array types that all packages share; how to freeze one, when a matrix is worth being sparse, and −p ln p."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy import linalg, sparse, special

__all__ = [
    "HARDLY",
    "SMALL",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Matrix",
    "WordArray",
    "dense",
    "entropy_terms",
    "freeze",
    "is_sparse_enough",
    "linalg",
    "matrix",
    "nonzero_entries",
    "sparse",
    "sparsify",
    "special",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]
Matrix = Any  # a plain array where it is small, else a sparse one: both multiply and are indexed alike

HARDLY = 1 / 16  # of a matrix: entries cost a dozen times as much one by one
TINIEST = 1e-300  # what a logarithm is taken of in place of 0: times 0 it is 0 all the same
SMALL = 1 << 20  # entries up to which a matrix is a plain array: 8 MB, and no library to load


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """`array` as a read-only view, so that a value object stays the value it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def matrix(entries: NDArray[Any], row: IntArray, column: IntArray, shape: tuple[int, int]) -> Matrix:
    """The matrix with these entries, those of one place added up: plain where it is small, else sparse."""
    if shape[0] * shape[1] > SMALL:
        return sparse.coo_array((entries, (row, column)), shape=shape).tocsr()
    plain = np.zeros(shape, dtype=entries.dtype)
    np.add.at(plain, (row, column), entries)
    return plain


def dense(table: Matrix) -> NDArray[Any]:
    """A matrix as a plain array."""
    return table if isinstance(table, np.ndarray) else np.asarray(table.toarray())


def nonzero_entries(table: Matrix) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Row, column and value of every entry that is not 0, row by row."""
    if isinstance(table, np.ndarray):
        row, column = np.nonzero(table)
        return row, column, table[row, column]
    entries = sparse.csr_array(table)
    row = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
    some = entries.data != 0
    return row[some], entries.indices[some].astype(np.int64), entries.data[some]


def entropy_terms(p: ArrayLike) -> FloatArray:
    r"""Entry by entry :math:`-p \ln p`, with :math:`0 \ln 0 = 0`."""
    p = np.asarray(p, dtype=np.float64)
    return np.asarray(-p * np.log(np.maximum(p, TINIEST)))


def is_sparse_enough(table: Matrix) -> bool:
    """Whether a matrix is large, and so few of its entries differ from 0 that working on these alone is quicker."""
    entries = int(np.count_nonzero(table)) if isinstance(table, np.ndarray) else table.nnz
    return bool(table.shape[0] * table.shape[1] > SMALL and entries < HARDLY * table.shape[0] * table.shape[1])


def sparsify(table: NDArray[Any]) -> Matrix:
    """The same matrix, sparse where it is hardly filled."""
    return sparse.csr_array(table) if is_sparse_enough(table) else table


class _LazyModule:
    """A module that is loaded when something of it is first asked for, by whichever thread."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if not TYPE_CHECKING:
    # A release of one column needs none of these, and loading them takes a third of its time.
    linalg, sparse, special = (_LazyModule(f"scipy.{name}") for name in ("linalg", "sparse", "special"))
