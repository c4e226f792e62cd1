"""Joint: the exact distribution p(s, x) of the secret and what is to be published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacyfunnel.arrays import FloatArray, IntArray, freeze
from privacyfunnel.errors import DistributionError
from privacyfunnel.formatting import MOST_ROWS, facts_html, table_html

Made = TypeVar("Made")
Found = TypeVar("Found")
More = ParamSpec("More")
INT64_TOTAL = 2**62  # below this a sum of weights cannot overflow an int64


class CountedTable(Protocol):
    """What a pass over a table counts: a contingency table with the labels of its sides."""

    @property
    def weights(self) -> IntArray: ...
    @property
    def secret_columns(self) -> tuple[str, ...]: ...
    @property
    def secret_labels(self) -> tuple[str, ...]: ...
    @property
    def attribute_names(self) -> tuple[str, ...]: ...
    @property
    def attribute_labels(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def combos(self) -> IntArray: ...


@dataclass(frozen=True, slots=True)
class Attribute:
    """A published column: its name, and the labels its values have."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Joint:
    r"""p(s, x): a row per secret value, a column per published value.

    A value x is a combination :math:`(x^1, …, x^m)` of labels, one per attribute; only combinations that occur
    take a column, in C order. Probabilities are exact: :math:`p(s, x) = w_{s,x} / \sum w` with integers w.

    >>> joint = Joint.from_counts([[3, 1], [1, 3]], secret=["ill", "well"], values=["a", "b"])
    >>> joint.p_sx
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """

    weights: NDArray[Any]  # c × a, int64, or Python integers where those would overflow
    secrets: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    combos: IntArray  # a × m: the label that value x has in each attribute
    secret_name: str = "S"

    def __repr__(self) -> str:
        names = " & ".join(at.name for at in self.attributes)
        return f"Joint of {self.secret_name} ({self.c} secrets) and {names} ({self.a} values)"

    def _repr_html_(self) -> str:
        """The counts as a table, which are the owner's own."""
        facts = [("secret", f"{self.secret_name}, {self.c} values"), ("weight", f"{int(self.weights.sum()):,}")]
        facts += [(at.name, f"{len(at.labels)} values") for at in self.attributes]
        shown = min(self.a, MOST_ROWS)
        header = [self.secret_name, *(" & ".join(value) for value in self.values[:shown])]
        rows = [
            [secret, *map(str, row[:shown])] for secret, row in zip(self.secrets, self.weights.tolist(), strict=True)
        ]
        return facts_html("Joint", facts) + table_html(header, rows)

    def __post_init__(self) -> None:
        c, a = self.weights.shape
        if len(self.secrets) != c or self.combos.shape != (a, len(self.attributes)):
            raise DistributionError(
                f"Labels must match the table; it has {c} secrets and {a} values, "
                f"the labels {len(self.secrets)} and {len(self.combos)}."
            )
        for what, labels in [("secret", self.secrets), *((at.name, at.labels) for at in self.attributes)]:
            if len(set(labels)) != len(labels):
                raise DistributionError(f"Labels must differ; those of '{what}' repeat. Rename or merge them.")
        empty_s = int((self.weights.sum(axis=1) == 0).sum())
        empty_x = int((self.weights.sum(axis=0) == 0).sum())
        if empty_s or empty_x:
            raise DistributionError(
                f"Every secret and every value must occur; {empty_s} of {c} secrets and {empty_x} of {a} values "
                "have no mass. Remove them first."
            )
        object.__setattr__(self, "weights", freeze(self.weights))
        object.__setattr__(self, "combos", freeze(self.combos))

    # -- named constructors ------------------------------------------------------------------------------------

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        secret: Sequence[str] | None = None,
        values: Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        names: Sequence[str] | None = None,
        secret_name: str = "S",
    ) -> Joint:
        """From a contingency table c × a, or c × a¹ × … × aᵐ for several attributes.

        `secret` and `values` are labels; for several attributes `values` is a list of labels per attribute.
        `names` are the attributes' names. A frame of counts, such as pandas' `crosstab(secret, published)`, brings
        labels and names with it.
        """
        index: Any = getattr(counts, "index", None)
        columns: Any = getattr(counts, "columns", None)
        if getattr(index, "nlevels", 0) == 1 and getattr(columns, "nlevels", 0) == 1:
            secret = list(map(str, index)) if secret is None else secret
            values = list(map(str, columns)) if values is None else values
            names = [str(columns.name)] if names is None and columns.name is not None else names
            secret_name = str(index.name) if secret_name == "S" and index.name is not None else secret_name
        try:
            table = np.asarray(counts)
        except ValueError:
            raise DistributionError("Counts must fill a table; these rows differ in length.") from None
        if table.dtype.kind == "f" and np.isfinite(table).all() and (table == np.floor(table)).all():
            table = _exact_integers(table)
        elif table.dtype.kind == "O" and all(isinstance(n, int) for n in table.flat):
            pass
        elif table.dtype.kind not in "iu":
            raise DistributionError(
                "Counts must be whole numbers of at least 0; these are not. "
                "If they are probabilities, use Joint.from_probabilities."
            )
        return cls._from_table(table, secret, values, names, secret_name)

    @classmethod
    def from_probabilities(
        cls,
        p: ArrayLike,
        secret: Sequence[str] | None = None,
        values: Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        names: Sequence[str] | None = None,
        secret_name: str = "S",
    ) -> Joint:
        """From probabilities p(s, x) that sum to 1 up to rounding. A float is a dyadic rational and stays one."""
        try:
            table = np.asarray(p, dtype=np.float64)
        except (TypeError, ValueError):
            raise DistributionError("Probabilities must be numbers; these are not.") from None
        if not np.isfinite(table).all() or (table < 0).any():
            raise DistributionError("Probabilities must be finite and at least 0; some are not.")
        total = float(table.sum())
        if abs(total - 1) > 1e-9:
            raise DistributionError(
                f"p(s, x) must sum to 1; it sums to {total:.6g}. If these are counts, use Joint.from_counts."
            )
        return cls._from_table(_exact_integers(table), secret, values, names, secret_name)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        secret: str | Sequence[str],
        publish: str | Sequence[str],
        bins: Sequence[Any] | Mapping[str, Any] = (),
    ) -> Joint:
        """From the rows of a data frame (anything narwhals reads): one secret, one or several published columns.

        `bins` are edges, quantiles or groupings by column: `{"age": [0, 18, 65], "visit": "month"}`.
        """
        # The model knows no reader of tables; the package, which is above all its parts, names one.
        count_frame = import_module("privacyfunnel").count_frame
        return cls.from_contingency(count_frame(frame, secret=secret, publish=publish, bins=bins))

    @classmethod
    def from_contingency(cls, table: CountedTable) -> Joint:
        """From what a pass over a table counted."""
        return cls(
            weights=table.weights,
            secrets=tuple(table.secret_labels),
            attributes=tuple(
                Attribute(n, tuple(ls)) for n, ls in zip(table.attribute_names, table.attribute_labels, strict=True)
            ),
            combos=table.combos,
            secret_name=" & ".join(table.secret_columns),
        )

    @classmethod
    def _from_table(
        cls,
        table: NDArray[Any],
        secret: Sequence[str] | None,
        values: Sequence[str] | Sequence[Sequence[str]] | None,
        names: Sequence[str] | None,
        secret_name: str,
    ) -> Joint:
        if table.ndim < 2 or 0 in table.shape:
            raise DistributionError(
                f"A joint needs a row per secret and a column per value; this has shape {table.shape}."
            )
        if (table < 0).any():
            raise DistributionError("Counts must be whole numbers of at least 0; some are negative.")
        sizes = table.shape[1:]
        m = len(sizes)
        if values is None:
            labels = [tuple(map(str, range(n))) for n in sizes]
        elif m == 1 and not any(isinstance(v, list | tuple | np.ndarray) for v in values):
            labels = [tuple(map(str, values))]
        else:
            labels = [tuple(map(str, v)) for v in values]
        if [len(ls) for ls in labels] != list(sizes):
            raise DistributionError(
                f"Value labels must match the table's shape {sizes}; there are {[len(ls) for ls in labels]}."
            )
        names = names if names is not None else (["X"] if m == 1 else [f"X{j + 1}" for j in range(m)])
        if len(names) != m:
            raise DistributionError(f"Names must match the attributes; there are {len(names)} for {m}.")
        for j, name in enumerate(names):
            others = tuple(k for k in range(table.ndim) if k != j + 1)
            empty = sizes[j] - int((table != 0).any(axis=others).sum())
            if empty:
                raise DistributionError(
                    f"Every value must occur; {empty} of the {sizes[j]} values of '{name}' have no mass. "
                    "Remove them first."
                )
        flat = table.reshape(table.shape[0], -1)
        occurs = np.flatnonzero((flat != 0).any(axis=0))
        combos = np.stack(np.unravel_index(occurs, sizes), axis=1).astype(np.int64)
        return cls(
            weights=_smallest_dtype(flat[:, occurs]),
            secrets=tuple(map(str, secret if secret is not None else range(table.shape[0]))),
            attributes=tuple(Attribute(n, ls) for n, ls in zip(names, labels, strict=True)),
            combos=combos,
            secret_name=secret_name,
        )

    # -- sizes and labels --------------------------------------------------------------------------------------

    @property
    def c(self) -> int:
        """How many values the secret has."""
        return int(self.weights.shape[0])

    @property
    def a(self) -> int:
        """How many values may be published."""
        return int(self.weights.shape[1])

    @property
    def m(self) -> int:
        """How many attributes a value has."""
        return len(self.attributes)

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """Each value as its labels, one per attribute."""
        columns = [np.array(at.labels, dtype=object)[self.combos[:, j]] for j, at in enumerate(self.attributes)]
        return tuple(zip(*columns, strict=True))

    @property
    def total(self) -> int:
        """The sum of all weights."""
        return int(self.weights.sum())

    # -- smaller tables ----------------------------------------------------------------------------------------

    def project(self, attributes: Sequence[int]) -> Joint:
        """The joint of the secret and only some of the attributes.

        >>> Joint.from_counts([[[3, 1], [0, 2]], [[1, 1], [1, 1]]]).project([1]).weights
        array([[3, 3],
               [2, 2]])
        """
        return self._merge_combos(self.combos[:, attributes], tuple(self.attributes[j] for j in attributes))

    def relabel(self, j: int, labels: Sequence[str]) -> Joint:
        """The joint in which the labels of attribute j are these; values whose labels become equal are one.

        >>> Joint.from_counts([[3, 1, 2], [1, 1, 4]]).relabel(0, ["few", "few", "many"]).weights
        array([[4, 2],
               [2, 4]])
        """
        different = tuple(dict.fromkeys(labels))
        combos = self.combos.copy()
        combos[:, j] = np.array([different.index(label) for label in labels])[combos[:, j]]
        attributes = list(self.attributes)
        attributes[j] = Attribute(attributes[j].name, different)
        return self._merge_combos(combos, tuple(attributes))

    def _merge_combos(self, combos: IntArray, attributes: tuple[Attribute, ...]) -> Joint:
        found, place = np.unique(combos, axis=0, return_inverse=True)
        weights = np.zeros((self.c, len(found)), dtype=self.weights.dtype)
        np.add.at(weights.T, place.reshape(-1), self.weights.T)
        return Joint(weights, self.secrets, attributes, found, self.secret_name)

    # -- probabilities -----------------------------------------------------------------------------------------

    @property
    def p_sx(self) -> FloatArray:
        """p(s, x), each entry the float nearest to it."""
        return _divide(self.weights, self.total)

    @property
    def p_s(self) -> FloatArray:
        """p(s)."""
        return _divide(self.weights.sum(axis=1), self.total)

    @property
    def p_x(self) -> FloatArray:
        """p(x)."""
        return _divide(self.weights.sum(axis=0), self.total)

    @property
    def p_x_given_s(self) -> FloatArray:
        """p(x | s), a row per secret."""
        return _divide(self.weights, self.weights.sum(axis=1)[:, None])

    @property
    def p_s_given_x(self) -> FloatArray:
        """p(s | x), a column per value."""
        return _divide(self.weights, self.weights.sum(axis=0)[None, :])


def _divide(numerators: NDArray[Any], denominators: Any) -> FloatArray:
    # Python's division of integers is correctly rounded at any size; numpy's is too where both fit a double.
    kind = numerators.dtype if int(np.max(denominators)) <= 2**53 else np.dtype(object)
    quotient = numerators.astype(kind) / np.asarray(denominators, dtype=kind)
    return np.asarray(quotient, dtype=np.float64)


def _smallest_dtype(table: NDArray[Any]) -> NDArray[Any]:
    """The weights as int64 where their sum fits, as Python integers where it does not."""
    exact = table.astype(object)
    return exact.astype(np.int64) if int(exact.sum()) < INT64_TOTAL else exact


def _exact_integers(table: FloatArray) -> NDArray[Any]:
    """Floats times the smallest power of two that makes them all integers, as Python integers."""
    ratios = [float(x).as_integer_ratio() for x in table.flat]
    scale = max((d for _, d in ratios), default=1)
    out = np.empty(len(ratios), dtype=object)
    out[:] = [n * (scale // d) for n, d in ratios]
    common = math.gcd(*out) or 1
    return (out // common).reshape(table.shape)


def cache_with_joint(
    measure: Callable[Concatenate[Made, Joint, More], Found],
) -> Callable[Concatenate[Made, Joint, More], Found]:
    """Keep the last measurement of a joint while the joint lives, and no longer: it tells the owner's counts."""
    kept: WeakKeyDictionary[Joint, tuple[tuple[Any, ...], Found]] = WeakKeyDictionary()

    @wraps(measure)
    def remember(made: Made, joint: Joint, /, *args: More.args, **more: More.kwargs) -> Found:
        found = kept.get(joint)
        if found is None or found[0][0] is not made or found[0][1:] != (args, more):
            found = kept[joint] = ((made, args, more), measure(made, joint, *args, **more))
        return found[1]

    return remember


def merge_secrets(joint: Joint, labels: Sequence[str]) -> Joint:
    """The joint whose secrets have these labels; secrets whose labels become equal are one.

    >>> merge_secrets(Joint.from_counts([[3, 1], [1, 0], [0, 2]]), ["a", "b", "b"]).weights
    array([[3, 1],
           [1, 2]])
    """
    different = tuple(dict.fromkeys(labels))
    weights = np.zeros((len(different), joint.a), dtype=joint.weights.dtype)
    np.add.at(weights, [different.index(label) for label in labels], joint.weights)
    return replace(joint, weights=weights, secrets=different)
