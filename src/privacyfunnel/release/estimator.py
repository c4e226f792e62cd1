"""An estimator in the style of scikit-learn: fitted on rows and their secret, it sanitises the rows it is given.

>>> import polars as pl
>>> from privacyfunnel import Sanitiser
>>> people = pl.DataFrame({"job": ["a", "b", "b", "a"] * 50, "town": ["u", "v", "u", "w"] * 50})
>>> fitted = Sanitiser(secret="job", epsilon=0.5).fit(people)
>>> fitted.transform(people).columns, fitted.protocol_.epsilon <= 0.5
(['town'], True)

It has the methods and attributes that scikit-learn's pipelines and `clone` ask for, and needs no scikit-learn.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.designs.methods import DEFAULT_METHOD
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.formatting import facts_html
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.uses.use import Use
from privacyfunnel.release.apply import apply
from privacyfunnel.release.design import design
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import ERROR, TABLE, VALUES
from privacyfunnel.tables.readers.eager_frames import FrameTable, add_column, convert_frame


class Sanitiser:
    """`fit(X)` designs a protocol for the columns of X and the secret; `transform(X)` draws rows with it.

    The secret is a column of X (`secret="illness"`), which is never passed on, or stands beside it:
    `fit(X, s=illness)`, where entry i belongs to row i whatever an index says. In a pipeline `set_fit_request(s=True)`
    routes it. y is what a pipeline predicts, and is not taken for the secret.

    X is a frame of any library that narwhals reads. Rows come back in their order, as what stands beside them in a
    pipeline does, and are numbered from 0: an index may hold the secret. After `set_output(transform="pandas")`, which
    asks for what scikit-learn does, they have the index of X. Whoever publishes rows shuffles them and drops it.
    `promise` is LIP(epsilon), LIP(1) where neither is given; all else is as for `design` and `apply`. In a
    cross-validation rows of another fold may leak a little more than those it was fitted to, and are refused where they
    carry the secret, unless `accept_drift` is set.
    """

    def __init__(
        self,
        promise: Promise | None = None,
        *,
        secret: str | None = None,
        epsilon: float | None = None,
        use: Use | str | None = None,
        method: str = DEFAULT_METHOD,
        as_: str = VALUES,
        unknown: str = ERROR,
        population: float | str | None = None,
        accept_drift: bool = False,
        bins: Any = (),
        seed: int | None = None,
    ) -> None:
        self.promise, self.secret, self.epsilon, self.use = promise, secret, epsilon, use
        self.method, self.as_, self.unknown = method, as_, unknown
        self.population, self.accept_drift, self.bins, self.seed = population, accept_drift, bins, seed

    def fit(self, X: Any, y: Any = None, *, s: Any = None) -> Self:
        """Design and certify the protocol, from the counts of X and the secret alone."""
        table = FrameTable.from_native(X)
        if s is not None and self.secret is not None:
            raise ParameterError(f"The secret is the column '{self.secret}' of X; another was given. Drop one.")
        if s is None and self.secret is None:
            found = "y is what a pipeline predicts, not the secret" if y is not None else "no secret was given"
            raise ParameterError(
                f"A Sanitiser needs rows and their secret; {found}. Name a column of X, Sanitiser(secret=…), or give "
                "it beside X, fit(X, s=…)."
            )
        if self.secret is not None and self.secret not in table.columns:
            raise ColumnError(f"The secret must be a column of X; '{self.secret}' is none of {len(table.columns)}.")
        people, secret = (X, self.secret) if self.secret is not None else add_column(X, s)
        columns = tuple(name for name in table.columns if name != self.secret)
        options: dict[str, Any] = {} if self.use is None else {"use": self.use}
        if self.promise is None:
            options["epsilon"] = 1.0 if self.epsilon is None else self.epsilon
        elif self.epsilon is not None:
            raise ParameterError("A promise has an ε of its own; another was given. Drop one of them.")
        else:
            options["promise"] = self.promise
        self.protocol_: SealedProtocol = design(
            people,
            ReleaseSpec(
                secret=secret,
                publish=columns,
                population=self.population,
                method=self.method,
                as_=self.as_,
                bins=self.bins,
                prior=None if self.population else TABLE,
                **options,
            ),
        )
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = len(table.columns)
        return self

    def transform(self, X: Any) -> Any:
        """The rows of X, drawn afresh; a frame of its kind, or of the one that `set_output` names."""
        protocol, table = self._require_fit(), FrameTable.from_native(X)
        columns = [at.name for at in protocol.domain.attributes]
        if not set(columns) <= set(table.columns) or not set(table.columns) <= {*columns, *self.feature_names_in_}:
            raise ColumnError(
                f"rows must have the {len(columns)} columns that the Sanitiser was fitted to, and no others; they have "
                "others. Select them first."
            )
        spec = ReleaseSpec(unknown=self.unknown, accept_drift=self.accept_drift, keep_order=True, seed=self.seed)
        drawn = apply(protocol, X, spec).table
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        return drawn if kind == "default" else convert_frame(drawn, kind, X)

    def fit_transform(self, X: Any, y: Any = None, *, s: Any = None) -> Any:
        """Both, one after the other."""
        return self.fit(X, y, s=s).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns of what `transform` gives."""
        from privacyfunnel.release.output_layout import output_layout

        return np.array(output_layout(self._require_fit()).names, dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say which frames `transform` gives: `pandas`, `polars` or `default`, of the kind it was given."""
        if transform not in (None, "default", "pandas", "polars"):
            raise ParameterError(f"transform gives default, pandas or polars; not '{transform}'.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def set_fit_request(self, *, s: bool | str | None = None) -> Self:
        """Have the secret routed to `fit` by scikit-learn, under its name or another."""
        from sklearn.utils.metadata_routing import MetadataRequest

        self._metadata_request = MetadataRequest(owner=self)
        self._metadata_request.fit.add_request(param="s", alias=s)
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn may route here."""
        if not hasattr(self, "_metadata_request"):
            clone = type(self)(**self.get_params()).set_fit_request()
            return clone._metadata_request
        return self._metadata_request

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True, two_d_array=False),
            non_deterministic=True,
        )

    def __repr__(self) -> str:
        usual = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = {name: value for name, value in self.get_params().items() if value is not usual[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _repr_html_(self) -> str:
        fitted = self.protocol_._facts() if self.__sklearn_is_fitted__() else [("fitted", "not yet")]
        return facts_html(repr(self), fitted)

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
            raise ParameterError("a Sanitiser must be fitted before it transforms; it was not. Call fit first.")
        return self.protocol_

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
