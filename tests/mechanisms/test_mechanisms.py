"""Every kind of law answers alike: what is drawn can be written, read, counted, restricted, observed and stored."""

import json
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from privacyfunnel.arrays import IntArray, WordArray
from privacyfunnel.audits.draw_agreement import chi_square
from privacyfunnel.mechanisms.mechanism import Mechanism
from privacyfunnel.mechanisms.sampling import RandomWords
from privacyfunnel.mechanisms.sealing import MECHANISMS, certify, exact_worst_leak
from privacyfunnel.model.promises import LDP, LIP, SRLIP
from privacyfunnel.release.findings.attacker_leaks import measure_leakage
from privacyfunnel.release.output_layout import output_layout
from tests.mechanisms.kinds import JOINT, MAKERS, ROWS, STREAM, VALUES, chances, codes_for, every_row, sealed_of

FALSE_ALARM = 1e-6  # of each judged draw; the seed is fixed
LABELS = tuple(at.labels for at in JOINT.attributes)
ANY_KIND = pytest.mark.parametrize("kind", MAKERS)


def law_of(kind: str) -> Mechanism:
    return sealed_of(kind).mechanism


def drawn_of(law: Mechanism) -> IntArray:
    return law.draw(codes_for(law), STREAM.rows(0, ROWS))


def test_every_kind_of_law_that_lists_its_inputs_is_looked_at_here() -> None:
    assert {law_of(kind).kind for kind in MAKERS} == {kind for kind, law in MECHANISMS.items() if law.lists_inputs}


@dataclass(frozen=True)
class Picked:
    """The words of some rows in any order, as a partition of a cluster would ask for them."""

    whole: RandomWords
    rows: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def word(self, draw: int = 0) -> WordArray:
        return self.whole.word(draw)[self.rows]

    def part(self, start: int, stop: int) -> "Picked":
        return Picked(self.whole, self.rows[start:stop])

    def scatter_words(self, rows: IntArray, draws: IntArray) -> WordArray:
        return self.whole.scatter_words(self.rows[rows], draws)


@ANY_KIND
def test_a_draw_depends_on_a_rows_own_input_and_words_alone(kind: str) -> None:
    law = law_of(kind)
    codes, whole = codes_for(law), drawn_of(law)
    for low, high in reversed(list(pairwise([0, 1, 1, 17, 1000, 2501, ROWS]))):
        np.testing.assert_array_equal(law.draw(codes[low:high], STREAM.rows(low, high - low)), whole[low:high])
    rows = np.random.default_rng(3).permutation(ROWS)
    for part in np.array_split(rows, 7):
        np.testing.assert_array_equal(law.draw(codes[part], Picked(STREAM.rows(0, ROWS), part)), whole[part])


@ANY_KIND
def test_what_is_drawn_is_found_again_from_the_labels_it_shows(kind: str) -> None:
    law = law_of(kind)
    drawn = drawn_of(law)
    shown = law.label_codes(drawn)
    assert shown.shape == (ROWS, len(law.columns))
    assert all(len(set(labels)) == len(labels) for labels in law.columns)
    again = law.find_outputs(shown)
    np.testing.assert_array_equal(again, drawn[:, : again.shape[1]])
    strange = shown.astype(np.int64)
    strange[3, 0] = -1
    assert (law.observation_codes(law.find_outputs(strange))[3] < 0).any()


@ANY_KIND
def test_labels_that_no_output_shows_together_are_no_output(kind: str) -> None:
    law = law_of(kind)
    every = np.array(list(product(*(range(len(labels)) for labels in law.columns))))
    drawn = law.find_outputs(every)
    known = (drawn >= 0).all(axis=1)
    np.testing.assert_array_equal(law.label_codes(drawn[known]), every[known])
    shown = {tuple(row) for row in law.label_codes(every_row(law)).tolist()}
    assert {tuple(row) for row in every[known].tolist()} == shown


@ANY_KIND
def test_what_is_written_is_read_back_as_what_was_drawn(kind: str) -> None:
    sealed = sealed_of(kind)
    drawn, way = drawn_of(sealed.mechanism), output_layout(sealed)
    table = pl.DataFrame(way.columns(drawn))
    assert tuple(table.columns) == way.names
    again = way.recover_codes(table)
    np.testing.assert_array_equal(again, drawn[:, : again.shape[1]])
    strange = table.with_columns(pl.lit("something else").alias(way.names[0]))
    assert (way.recover_codes(strange) < 0).any(axis=1).all()


@ANY_KIND
def test_a_law_from_its_own_json_draws_and_leaks_the_same(kind: str) -> None:
    sealed = sealed_of(kind)
    law = sealed.mechanism
    content = json.loads(json.dumps(law.to_json()))
    again = MECHANISMS[law.kind].from_json(content, law.sees_secret, sealed.domain.combos)
    np.testing.assert_array_equal(drawn_of(again), drawn_of(law))
    assert (again.columns, again.inputs) == (law.columns, law.inputs)
    assert certify(again, sealed.promise, JOINT) == sealed.epsilon
    assert again.to_json() == law.to_json()


@ANY_KIND
def test_chances_of_everything_that_can_be_drawn_sum_to_one(kind: str) -> None:
    law = law_of(kind)
    np.testing.assert_allclose(chances(law, every_row(law)).sum(axis=0), 1.0)


@ANY_KIND
@pytest.mark.parametrize("wanted", [j for size in (1, 2) for j in combinations(range(2), size)])
def test_what_a_restricted_law_shows_is_the_marginal_of_the_whole(kind: str, wanted: tuple[int, ...]) -> None:
    law = law_of(kind)
    attributes = law.required_attributes(wanted, JOINT.m)
    assert set(wanted) <= set(attributes)
    part, inputs = law.restrict_attributes(attributes)
    whole = every_row(law)
    rows = whole if part is law else whole[:, attributes]
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    marginal = np.zeros((len(distinct), law.inputs))
    np.add.at(marginal, which.reshape(-1), chances(law, whole))
    np.testing.assert_allclose(chances(part, distinct), marginal[:, inputs], atol=1e-15)
    # Nor does it matter which of the inputs that look alike in these columns stands for them.
    if part is not law:
        alike = np.unique(JOINT.combos[:, attributes], axis=0, return_inverse=True)[1].reshape(-1)
        np.testing.assert_allclose(marginal, marginal[:, inputs[alike]], atol=1e-15)


@ANY_KIND
def test_a_true_draw_passes_the_count_and_a_false_one_does_not(kind: str) -> None:
    law = law_of(kind)
    codes, drawn = codes_for(law), drawn_of(law)
    tally, false = law.tally(), law.tally()
    for low, high in pairwise([0, 100, ROWS]):
        tally.add(codes[low:high], drawn[low:high])
    assert tally.impossible == 0
    judged = [chi_square(counts, q) for counts, q in tally.rows]
    assert chi2.sf(sum(s for s, _ in judged), sum(f for _, f in judged)) > FALSE_ALARM
    false.add((codes + 1) % law.inputs, drawn)
    judged = [chi_square(counts, q) for counts, q in false.rows]
    statistic, degrees = sum(s for s, _ in judged), sum(f for _, f in judged)
    assert false.impossible or chi2.sf(statistic, degrees) < FALSE_ALARM
    tally.add(codes[:5], np.full_like(drawn[:5], -1, dtype=np.int64))
    assert tally.impossible == 5


@ANY_KIND
def test_whole_rows_come_as_often_as_their_chances_say(kind: str) -> None:
    law = law_of(kind)
    every, codes, drawn = every_row(law), codes_for(law), drawn_of(law)
    place = {tuple(row): y for y, row in enumerate(every.astype(int).tolist())}
    counts = np.zeros((law.inputs, len(every)), dtype=np.int64)
    outputs = np.array([place[tuple(row)] for row in drawn.astype(int).tolist()])
    np.add.at(counts, (codes, outputs), 1)
    q = chances(law, every).T
    assert not counts[q == 0].any()
    statistic, degrees = chi_square(counts, q)
    assert chi2.sf(statistic, degrees) > FALSE_ALARM


@ANY_KIND
def test_unchanged_rows_show_the_labels_they_had(kind: str) -> None:
    law = law_of(kind)
    own = law.unchanged_outputs(LABELS, JOINT.combos)
    drawn = drawn_of(law)

    def same(row: IntArray, x: int) -> bool:
        """As someone would see it who compares the texts."""
        return tuple(law.columns[j][code] for j, code in enumerate(row)) == JOINT.values[x]

    shown = law.label_codes(drawn)
    assert law.count_unchanged(own, VALUES, drawn) == sum(same(shown[i], x) for i, x in enumerate(VALUES.tolist()))
    every = every_row(law)
    q = chances(law, every)
    texts = law.label_codes(every)
    p = JOINT.p_sx.ravel() if law.sees_secret else JOINT.p_x
    by_hand = sum(p[z] * q[y, z] for y in range(len(every)) for z in range(len(p)) if same(texts[y], z % JOINT.a))
    assert law.unchanged_probability(own, JOINT) == pytest.approx(by_hand)


@ANY_KIND
def test_a_law_among_some_inputs_is_the_same_law_there(kind: str) -> None:
    law = law_of(kind)
    inputs = np.array([4, 0, 3])
    few = law.restrict_inputs(inputs)
    assert few.inputs == 3
    every = every_row(law)
    np.testing.assert_array_equal(chances(few, every), chances(law, every)[:, inputs])


@ANY_KIND
@pytest.mark.parametrize("promise", [LIP(0), LDP(0), SRLIP(0)])
def test_exact_leaks_and_measured_ones_agree(kind: str, promise: LIP | LDP | SRLIP) -> None:
    law = law_of(kind)
    exact = exact_worst_leak(law, promise, JOINT).leak.epsilon
    assert exact == pytest.approx(promise.leakage(JOINT, law.protocol), abs=1e-9)
    whole = law.measurable_protocol(10**6)
    if whole is not None and not law.sees_secret:
        found = measure_leakage(JOINT, promise, whole)
        assert found.leak.epsilon == pytest.approx(exact, abs=1e-9)
        assert whole.describe(found.leak, JOINT).startswith("someone who knows ")


@ANY_KIND
def test_a_law_says_why_it_is_unlisted(kind: str) -> None:
    law = law_of(kind)
    table = law.table_protocol
    assert (table is None) == bool(law.no_table_reason)
    if table is not None:
        np.testing.assert_array_equal(chances(law, every_row(law)), table.channel.T)
