"""What counting published values would be off by: as the channel says, and by chance alone where margins are kept."""

from dataclasses import replace

import numpy as np
import pytest

from privacyfunnel.designs.methods import Options, find_method
from privacyfunnel.estimation.expected_precision import counting_error
from privacyfunnel.mechanisms.outcomes import build_outcomes
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.output_layout import output_layout

COUNTS = np.array([[[40, 2], [10, 7], [9, 9]], [[3, 30], [10, 12], [8, 40]]])
JOINT = Joint.from_counts(COUNTS, names=["town", "work"])


def test_counts_of_published_values_are_off_by_what_is_said() -> None:
    sealed = find_method("randomised-response").design(JOINT, LIP(0.3)).seal()
    found = counting_error(sealed, JOINT, 540_000)
    assert found is not None
    codes = np.repeat(np.arange(JOINT.a), 3000 * JOINT.weights.sum(axis=0).astype(np.int64))
    drawn = sealed.sample(codes, KeyStream.from_seed(1))
    shown = np.stack(
        [
            np.array([at.labels.index(label) for label in labels])[codes]
            for at, labels, codes in zip(
                JOINT.attributes, sealed.mechanism.columns, sealed.mechanism.label_codes(drawn).T, strict=True
            )
        ],
        axis=1,
    )
    off: dict[tuple[str, str], float] = {}
    for j, attribute in enumerate(JOINT.attributes):
        before, after = (np.bincount(held[:, j]) / len(codes) for held in (JOINT.combos[codes], shown))
        off |= {(attribute.name, label): after[v] - before[v] for v, label in enumerate(attribute.labels)}
    assert off[found.column, found.label] == pytest.approx(found.bias, abs=5e-3)  # 540,000 rows: seven standard errors
    assert abs(found.bias) >= max(map(abs, off.values())) - 5e-3
    assert found.most >= abs(off[found.column, found.label])


def test_where_the_margin_is_kept_counting_is_off_by_chance_alone() -> None:
    kept = find_method("optimal").design(JOINT, LIP(0.3), Options(as_values=True)).seal()
    found = counting_error(kept, JOINT, 10_000)
    assert found is not None
    assert abs(found.bias) < 1e-9
    assert 0 < found.most <= 1.96 / (2 * 100)  # of a share of one half


def test_counting_the_values_beside_codes_is_off_by_what_is_said() -> None:
    sealed = find_method("optimal").design(JOINT, LIP(0.3)).seal()
    coded = replace(sealed, outcomes=build_outcomes(sealed.mechanism, JOINT, ()))
    assert coded.outcomes
    found = counting_error(coded, JOINT, 360_000)
    assert found is not None
    codes = np.repeat(np.arange(JOINT.a), 2000 * JOINT.weights.sum(axis=0).astype(np.int64))
    shown = output_layout(coded).columns(coded.sample(codes, KeyStream.from_seed(1)))
    column = next(series for series in shown if series.name == found.column)
    attribute = next(at for at in JOINT.attributes if at.name == found.column)
    j, v = JOINT.attributes.index(attribute), attribute.labels.index(found.label)
    before = float((JOINT.combos[codes, j] == v).mean())
    after = float(np.mean([label == found.label for label in column.to_list()]))
    assert after - before == pytest.approx(found.bias, abs=6e-3)


def test_what_is_published_as_it_is_is_counted_exactly() -> None:
    plain = Joint.from_counts([[30, 20, 10], [30, 20, 10]])
    sealed = find_method("optimal").design(plain, LIP(0.3)).seal()
    found = counting_error(sealed, plain, 1000)
    assert found is not None
    assert found.most == 0
