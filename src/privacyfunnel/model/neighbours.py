"""A promise that is kept as well for neighbours: for whoever knows what a person has in some of the columns.

With a secret s, columns A and B ⊆ A it compares P(y | s, x_B) with P(y | x_B), or with P(y | s′, x_B): the pairs of the
promise that it widens, among people who share what is known. Real or synthetic records keep it under a model in which
(s, x_A) is the secret (docs/theory.md, Theorem 82); no other mechanism is checked for it. Where other odds are covered,
they are so among those who share what is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from privacyfunnel.errors import ParameterError
from privacyfunnel.model.promise_base import ExtendedPromise, inner


@dataclass(frozen=True)
class NeighbourPromise(ExtendedPromise, named=False):
    """A promise for everybody, and for those who know these columns of a person, or some of them."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        promise = self.promise
        if promise.population is not None or promise.guards_known_attributes:
            raise ParameterError(
                f"Neighbours who know some columns are covered for one prior, by promises such as LIP and LDP; this "
                f"{promise.name} is about more. Ask for one of them."
            )

    odds = inner("odds")

    @property
    def known_columns(self) -> tuple[str, ...]:
        return self.columns

    table_promise = inner("table_promise")

    group_pairs = inner("group_pairs")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ParameterError(
            f"Neighbours who know {', '.join(self.columns)} are covered by real or synthetic records alone; this is "
            "another mechanism. Publish three columns or more under a published model, or promise SRLIP."
        )

    comparisons = constraints = _refuse
