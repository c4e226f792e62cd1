"""An estimator in the style of scikit-learn: fitted on rows and their secret, it sanitises the rows it is given.

>>> import polars as pl
>>> from privacyfunnel import LIP, Sanitiser
>>> people = pl.DataFrame({"job": ["a", "b", "b", "a"] * 50, "town": ["u", "v", "u", "w"] * 50})
>>> fitted = Sanitiser(promise=LIP(0.5)).fit(people.select("town"), people["job"])
>>> fitted.transform(people.select("town")).columns, fitted.protocol_.epsilon <= 0.5
(['town'], True)

It has the methods and attributes that scikit-learn's pipelines and `clone` ask for, and needs no scikit-learn.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from privacyfunnel.designs.method_selection import DEFAULT_METHOD
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import LIP, Promise
from privacyfunnel.release.apply import apply
from privacyfunnel.release.design import design
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import ERROR, VALUES
from privacyfunnel.tables.readers.eager_frames import FrameTable, add_column


class Sanitiser:
    """`fit(X, s)` designs a protocol for the columns of X and the secret s; `transform(X)` draws rows with it.

    X is a frame of any library that narwhals reads, s a column or a list of as many entries, the i-th of which belongs
    to the i-th row of X, whatever an index says. Rows come back in their order, as what stands beside them in a
    pipeline does, and are numbered from 0: an index may hold the secret. Whoever publishes them shuffles them.
    `promise` is LIP(1) where none is given; all else is as for `design` and `apply`.
    """

    def __init__(
        self,
        promise: Promise | None = None,
        *,
        method: str = DEFAULT_METHOD,
        as_: str = VALUES,
        unknown: str = ERROR,
        population: float | str | None = None,
        bins: Any = (),
        seed: int | None = None,
    ) -> None:
        self.promise, self.method, self.as_, self.unknown = promise, method, as_, unknown
        self.population, self.bins, self.seed = population, bins, seed

    def fit(self, X: Any, s: Any = None) -> Self:
        """Design and certify the protocol, from the counts of X and s alone."""
        if s is None:
            raise ParameterError("a Sanitiser is fitted to rows and their secret; no secret was given. Use fit(X, s).")
        table = FrameTable.from_native(X)
        people, secret = add_column(X, s)
        self.protocol_: SealedProtocol = design(
            people,
            ReleaseSpec(
                secret=secret,
                publish=table.columns,
                promise=self.promise or LIP(1.0),
                prior=None if self.population else "table",
                population=self.population,
                method=self.method,
                as_=self.as_,
                bins=self.bins,
            ),
        )
        self.feature_names_in_ = list(table.columns)
        self.n_features_in_ = len(table.columns)
        return self

    def transform(self, X: Any) -> Any:
        """The rows of X, drawn afresh; a frame of its kind."""
        protocol = self._require_fit()
        columns = FrameTable.from_native(X).columns
        if list(columns) != self.feature_names_in_:
            raise ColumnError(
                f"rows must have the {self.n_features_in_} columns that the Sanitiser was fitted to, in their order; "
                "they have others. Select them first."
            )
        return apply(protocol, X, ReleaseSpec(unknown=self.unknown, keep_order=True, seed=self.seed)).table

    def fit_transform(self, X: Any, s: Any = None) -> Any:
        """Both, one after the other."""
        return self.fit(X, s).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """The columns of what `transform` gives."""
        from privacyfunnel.release.output_layout import output_layout

        return list(output_layout(self._require_fit()).names)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, as scikit-learn asks."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **given: Any) -> Self:
        """Change what it was made with, as scikit-learn asks."""
        strange = [name for name in given if name not in self._parameter_names()]
        if strange:
            raise ParameterError(
                f"a Sanitiser has no parameter '{strange[0]}'; it has {', '.join(self._parameter_names())}."
            )
        for name, value in given.items():
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "protocol_")

    def _require_fit(self) -> SealedProtocol:
        if not self.__sklearn_is_fitted__():
            raise ParameterError("a Sanitiser must be fitted before it transforms; it was not. Call fit(X, s) first.")
        return self.protocol_

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
