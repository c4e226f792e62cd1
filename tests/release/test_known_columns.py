"""What real or synthetic records tell somebody who knows a column: against all chances in fractions."""

from fractions import Fraction

import numpy as np

from privacyfunnel.model.joint import Joint
from privacyfunnel.model.published.tree_model import UNIT
from privacyfunnel.release.findings.known_columns import measure_known_columns
from tests.mechanisms.test_real_or_synthetic import all_records, design_number, exact_channel
from tests.model.test_tree_model import likelihood


def test_the_measured_leak_is_that_of_the_exact_chances() -> None:
    compared = 0
    for number in (1, 2, 4, 7, 8, 11):
        mechanism = design_number(number).mechanism
        model, channel, records = mechanism.model, exact_channel(mechanism), all_records(mechanism.model)
        if records.shape[1] < 2:
            continue
        shares = [Fraction(int(share), UNIT) for share in model.shares]
        mass = [[p * likelihood(model, s, tuple(x)) for x in records.tolist()] for s, p in enumerate(shares)]
        exact = 0.0
        for j, attribute in enumerate(model.attributes):
            for label in range(len(attribute.labels)):
                inside = np.flatnonzero(records[:, j] == label).tolist()
                total = sum((of_secret[x] for of_secret in mass for x in inside), Fraction(0))
                for y in range(len(records)):
                    seen = sum((of_secret[x] * channel[x][y] for of_secret in mass for x in inside), Fraction(0))
                    if not seen or float(seen / total) < 1e-3:  # too rare for a trial draw
                        continue
                    for of_secret in mass:
                        own = sum((of_secret[x] for x in inside), Fraction(0))
                        if not own:
                            continue
                        given = sum((of_secret[x] * channel[x][y] for x in inside), Fraction(0)) / own
                        ratio = float(given / (seen / total))
                        exact = max(exact, abs(np.log(ratio)) if ratio else np.inf)
        weights = np.array([[float(p) for p in of_secret] for of_secret in mass])
        counts = np.rint(weights * 2**30).astype(np.int64)
        some = counts.any(axis=0)
        joint = Joint(counts[:, some], model.secret.labels, model.attributes, records[some], "secret")
        found = measure_known_columns(mechanism, joint)
        assert found.epsilon > 0.9 * exact or exact < 0.02
        assert not found.exact
        assert "of rows where" in found.text
        compared += exact > mechanism.promise.epsilon
    assert compared > 1
