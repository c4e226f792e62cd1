"""The estimator in the style of scikit-learn: its own claims, and scikit-learn's checks as far as they make sense."""

from typing import Any

import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
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
    fitted = Sanitiser(LIP(0.3)).fit(X, s=rows["job"])
    out = fitted.transform(X)
    assert type(out) is type(X)
    assert len(out) == 300
    assert fitted.protocol_.domain.secret_columns == (("job",) if kind != "pyarrow" else ("secret",))
    assert fitted.protocol_.epsilon <= 0.3
    assert fitted.get_feature_names_out().tolist() == ["town", "sex"]
    assert (
        Sanitiser(LIP(0.3), seed=1)
        .fit(X, s=rows["job"])
        .transform(X)
        .equals(Sanitiser(LIP(0.3), seed=1).fit(X, s=rows["job"]).transform(X))
    )


def test_it_is_cloned_and_stands_in_a_pipeline() -> None:
    X, s = PEOPLE.select("town", "job").to_pandas(), PEOPLE["job"].to_list()
    mine = Sanitiser(LIP(0.3), secret="job", method="randomised-response")
    again = clone(mine)
    assert again.get_params() == mine.get_params()
    line = Pipeline([("sanitise", again)])
    out = line.fit_transform(X, s)  # which is y, and is not looked at
    assert list(out.columns) == ["town"]
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
        Sanitiser().fit(X, s=["a", "b"])
    with pytest.raises(ColumnError, match="the 1 columns that the Sanitiser was fitted to"):
        Sanitiser().fit(X, s=PEOPLE["job"]).transform(PEOPLE)
    with pytest.raises(ParameterError, match="no parameter 'eps'"):
        Sanitiser().set_params(eps=1)
    with pytest.raises(ParameterError, match="y is what a pipeline predicts, not the secret"):
        Sanitiser().fit(X, PEOPLE["job"])
    with pytest.raises(ColumnError, match="'jop' is none of 1"):
        Sanitiser(secret="jop").fit(X)
    with pytest.raises(ParameterError, match="Drop one"):
        Sanitiser(secret="town").fit(X, s=PEOPLE["job"])
    with pytest.raises(ParameterError, match="Drop one"):
        Sanitiser(LIP(1), epsilon=1).fit(X, s=PEOPLE["job"])


def test_a_secret_column_is_not_passed_on_and_may_be_missing_later() -> None:
    fitted = Sanitiser(secret="job", epsilon=0.5, use="information").fit(PEOPLE)
    assert fitted.transform(PEOPLE).columns == fitted.transform(PEOPLE.drop("job")).columns
    assert "job" not in fitted.transform(PEOPLE).columns
    assert fitted.feature_names_in_.tolist() == ["job", "town", "sex"]
    assert repr(Sanitiser(secret="job", epsilon=0.5)) == "Sanitiser(secret='job', epsilon=0.5)"
    assert "certified" in fitted._repr_html_()


def test_scikit_learn_routes_the_secret_and_sets_the_kind_of_output() -> None:
    X, s = PEOPLE.select("town", "sex").to_pandas().set_index(pd.Index(range(300, 600))), PEOPLE["job"].to_list()
    with config_context(enable_metadata_routing=True):
        line = Pipeline([("sanitise", Sanitiser(epsilon=0.5).set_fit_request(s=True)), ("code", OneHotEncoder())])
        assert clone(line).fit(X, [0] * 300, s=s).transform(X).shape[0] == 300
    wide = ColumnTransformer([("mine", Sanitiser(secret="job", epsilon=0.5), ["town", "job"])], remainder="passthrough")
    everything = X.assign(job=s)
    shown = wide.set_output(transform="pandas").fit_transform(everything)
    assert shown.index.equals(X.index)
    assert shown.columns.tolist() == ["mine__town", "remainder__sex"]
    assert isinstance(Sanitiser(secret="job").set_output(transform="polars").fit_transform(everything), pl.DataFrame)


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
