"""The estimator in the style of scikit-learn: its own claims, and scikit-learn's checks as far as they make sense."""

from typing import Any

import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks as checks

from privacyfunnel import LIP, Sanitiser
from privacyfunnel.errors import ColumnError, ParameterError, TableError

PEOPLE = pl.DataFrame(
    {
        "job": [("a", "b", "c")[(i * 5 % 7 % 3 + (i % 5 > 2)) % 3] for i in range(300)],
        "town": ["klm"[i * 5 % 7 % 3] for i in range(300)],
        "sex": ["fm"[i % 2] for i in range(300)],
    }
)
FRAMES = {"polars": PEOPLE, "pandas": PEOPLE.to_pandas(), "pyarrow": PEOPLE.to_arrow()}


@pytest.mark.parametrize("kind", FRAMES)
def test_it_fits_and_transforms_frames_of_every_kind(kind: str) -> None:
    rows: Any = FRAMES[kind]
    X = rows.select(["town", "sex"]) if kind != "pandas" else rows[["town", "sex"]]
    fitted = Sanitiser(LIP(0.3)).fit(X, rows["job"])
    out = fitted.transform(X)
    assert type(out) is type(X)
    assert len(out) == 300
    assert fitted.protocol_.domain.secret_columns == (("job",) if kind != "pyarrow" else ("secret",))
    assert fitted.protocol_.epsilon <= 0.3
    assert fitted.get_feature_names_out() == ["town", "sex"]
    assert (
        Sanitiser(LIP(0.3), seed=1)
        .fit(X, rows["job"])
        .transform(X)
        .equals(Sanitiser(LIP(0.3), seed=1).fit(X, rows["job"]).transform(X))
    )


def test_it_is_cloned_and_stands_in_a_pipeline() -> None:
    X, s = PEOPLE.select("town").to_pandas(), PEOPLE["job"].to_list()
    mine = Sanitiser(LIP(0.3), method="randomised-response")
    again = clone(mine)
    assert again.get_params() == mine.get_params()
    line = Pipeline([("sanitise", again)])
    out = line.fit_transform(X, s)
    assert isinstance(out, pd.DataFrame)
    assert not hasattr(mine, "protocol_")
    assert line.set_params(sanitise__method="optimal").named_steps["sanitise"].method == "optimal"


def test_what_cannot_be_fitted_or_transformed_is_said() -> None:
    X = PEOPLE.select("town")
    with pytest.raises(ParameterError, match="no secret was given"):
        Sanitiser().fit(X)
    with pytest.raises(ParameterError, match="must be fitted before"):
        Sanitiser().transform(X)
    with pytest.raises(TableError, match="a secret for each of 300 rows; there are 2"):
        Sanitiser().fit(X, ["a", "b"])
    with pytest.raises(ColumnError, match="the 1 columns that the Sanitiser was fitted to"):
        Sanitiser().fit(X, PEOPLE["job"]).transform(PEOPLE)
    with pytest.raises(ParameterError, match="no parameter 'epsilon'"):
        Sanitiser().set_params(epsilon=1)


# Those of scikit-learn's checks that do not hand over matrices of numbers without names: the others fit arrays, which
# have no columns to publish, or ask for the same output twice, which a fresh key must not give.
CHECKS = (
    checks.check_estimator_cloneable,
    checks.check_no_attributes_set_in_init,
    checks.check_parameters_default_constructible,
    checks.check_get_params_invariance,
    checks.check_set_params,
    checks.check_estimator_repr,
    checks.check_do_not_raise_errors_in_init_or_set_params,
    checks.check_mixin_order,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_scikit_learns_checks_of_estimators_pass(check: Any) -> None:
    check("Sanitiser", Sanitiser())
