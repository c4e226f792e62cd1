r"""A promise about output and kept columns together.

A kept column K leaves as it is, so all that is published of a record is the pair (Y, K). For a pair of events (E, F)
of the promise, every output y and every kept value k,

.. math:: e^{-\varepsilon} \le \frac{P(y, k \mid E)}{P(y, k \mid F)} \le e^{\varepsilon}, \qquad
   P(y, k \mid E) = \sum_x q(y \mid x) P(x, k \mid E),

which is linear in q as the promise itself is. The mechanism does not look at K. Under a promise about what others know
already (SRLIP) the kept columns count among the attributes that they may know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray, Matrix, dense
from privacyfunnel.errors import ParameterError, SizeError
from privacyfunnel.hints import hint
from privacyfunnel.model.comparisons import Comparisons
from privacyfunnel.model.constraints import LinearConstraints, lift
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promise_base import ExtendedPromise

MOST_CELLS = 1 << 25  # of secrets × pairs (x, k), and of compared events × kept values
ALIKE = 12  # digits of functionals that are the same


@dataclass(frozen=True, slots=True, eq=False)
class KeptCounts:
    """n(s, x, k): how many records have each secret and value, as numbers of a joint, and each kept combination."""

    columns: tuple[str, ...]
    cells: IntArray  # n × 3: s, x and k, each triple once
    weights: IntArray  # n
    codes: IntArray | None = None  # combinations × columns: the number of the value that each k has in each column

    @property
    def combinations(self) -> int:
        """How many combinations of kept values there are."""
        return len(np.unique(self.cells[:, 2]))

    def each_column(self) -> Iterator[KeptCounts]:
        """The counts of every kept column by itself, where several are kept."""
        if self.codes is None or len(self.columns) < 2:
            return
        for name, code in zip(self.columns, self.codes.T, strict=True):
            cells, same = np.unique(
                np.column_stack([self.cells[:, :2], code[self.cells[:, 2]]]), axis=0, return_inverse=True
            )
            weights = np.zeros(len(cells), dtype=np.int64)
            np.add.at(weights, same.reshape(-1), self.weights)
            yield KeptCounts((name,), cells, weights)

    def extend_joint(self, joint: Joint) -> tuple[Joint, IntArray, IntArray]:
        """p(s, (x, k)) with the kept columns as more attributes, and x and k of each of its values."""
        s, x, kept = self.cells.T
        numbers, k = np.unique(kept, return_inverse=True)
        pairs, pair = np.unique(x * len(numbers) + k.reshape(-1), return_inverse=True)
        if joint.c * len(pairs) > MOST_CELLS:
            raise self._size_error(f"{len(pairs):,} combinations of published and kept values")
        weights = np.zeros((joint.c, len(pairs)), dtype=np.int64)
        np.add.at(weights, (s, pair.reshape(-1)), self.weights)
        x_of, k_of = pairs // len(numbers), pairs % len(numbers)
        codes = np.arange(len(numbers))[:, None] if self.codes is None else self.codes[numbers]
        names = self.columns if self.codes is not None else (" & ".join(self.columns),)
        kept_attributes = (
            Attribute(name, tuple(map(str, range(int(code.max()) + 1))))
            for name, code in zip(names, codes.T, strict=True)
        )
        attributes, combos = (*joint.attributes, *kept_attributes), np.column_stack([joint.combos[x_of], codes[k_of]])
        return Joint(weights, joint.secrets, attributes, combos, joint.secret_name), x_of, k_of

    def split_events(self, block: Comparisons, joint: Joint, x_of: IntArray, k_of: IntArray) -> Comparisons:
        """Comparisons of the extended joint as those of `joint`: each event in parts, one for every kept value."""
        pair, kept = block.input % len(x_of), int(k_of.max()) + 1
        if kept * max(len(block.of_class), len(block.pairs)) > MOST_CELLS:
            raise self._size_error(f"{kept:,} kept values in {len(block.pairs):,} comparisons")
        part = block.event * kept + k_of[pair]
        occurs = np.zeros((len(block.of_class), kept), dtype=bool)
        occurs.reshape(-1)[part] = True
        which, k = np.nonzero(occurs[block.pairs[:, 0]] | occurs[block.pairs[:, 1]])
        used, pairs = np.unique(block.pairs[which] * kept + k[:, None], return_inverse=True)
        held = np.flatnonzero(np.isin(part, used))
        of_class, number = np.unique(block.of_class[used // kept] * kept + used % kept, return_inverse=True)
        known = [j for j, attribute in enumerate(block.known) if attribute < joint.m]
        x = x_of[pair[held]]
        return Comparisons(
            inputs=block.inputs // len(x_of) * joint.a,
            event=np.searchsorted(used, part[held]),
            input=block.input[held] // len(x_of) * joint.a + x,
            weight=block.weight[held],
            secrets=block.secrets[used // kept],
            of_class=number.reshape(-1),
            pairs=pairs.reshape(-1, 2),
            known=tuple(block.known[j] for j in known),
            known_labels=block.known_labels[of_class // kept][:, known],
            condition_totals=block.totals[used // kept],
            scales=None if block.scales is None else block.scales[which],
            mixed=block.mixed,
        )

    def _size_error(self, found: str) -> SizeError:
        return SizeError(
            f"Kept columns are judged together with what is published, for at most {MOST_CELLS:,} numbers; "
            f"{' & '.join(self.columns)} make {found}. Keep fewer or coarser columns."
        )


@dataclass(frozen=True)
class KeptPromise(ExtendedPromise, named=False):
    """A promise that holds for what is published of a record together with its kept columns, on counted records."""

    counts: KeptCounts = field(compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        promise = self.promise
        if promise.population is not None or promise.components is not None or promise.odds is not None:
            raise ParameterError(
                f"Kept columns are judged on the counts of a table; {promise.name} was asked for a population or for "
                f"several priors or odds. Leave out {hint('keep')}, or publish the columns with {hint('publish')}."
            )

    def comparisons(self, joint: Joint, sees_secret: bool) -> Iterator[Comparisons]:
        extended, x_of, k_of = self.counts.extend_joint(joint)
        for block in self.promise.comparisons(extended, sees_secret):
            yield self.counts.split_events(block, joint, x_of, k_of)

    def constraints(self, joint: Joint, sees_secret: bool = False) -> LinearConstraints:
        """As numbers alone, each once; those of the promise itself where the kept columns add nothing to them."""
        own = self.promise.constraints(joint, sees_secret)
        prior = joint.p_sx.ravel() if sees_secret else joint.p_x
        prior = prior[prior > 0]
        d, parts = len(prior), [np.empty((0, 2 * len(prior) + 2))]
        for block in self.comparisons(joint, sees_secret):
            lifted, _ = lift(block, joint, sees_secret)
            parts.append(_normalise(lifted, block.pairs, prior, block.scales))
        kept, plain = np.concatenate(parts), _normalise(own.functionals, own.pairs, prior, own.scales)
        if not {each.tobytes() for each in _round(kept)} - {each.tobytes() for each in _round(plain)}:
            return own
        kept = kept[np.unique(_round(kept), axis=0, return_index=True)[1]]
        scales = None if own.scales is None else kept[:, 2 * d :]
        return LinearConstraints.from_pairs(kept[:, :d], kept[:, d : 2 * d], scales)


def _normalise(functionals: Matrix, pairs: IntArray, prior: FloatArray, scales: FloatArray | None) -> FloatArray:
    """L_E and L_F side by side, a row per pair, so that L_F is 1 at the prior; and the scales behind them."""
    one, other = (dense(functionals[pairs[:, i]]) for i in (0, 1))
    scale = other @ prior
    scale[scale == 0] = 1.0  # F excludes the kept value: the promise is broken, scaled or not
    scales = np.ones((len(pairs), 2)) if scales is None else scales
    return np.concatenate([one / scale[:, None], other / scale[:, None], scales], axis=1)


def _round(rows: FloatArray) -> FloatArray:
    return np.round(rows, ALIKE) + 0.0
