"""Estimation from chains, against their channels multiplied out by hand."""

from functools import cache
from itertools import product

import numpy as np
import polars as pl
import pytest

from privacyfunnel.designs.chain.chain_design import Chain, SolvedChain
from privacyfunnel.designs.chain.step_order import chain_protocol
from privacyfunnel.errors import SizeError, TableError
from privacyfunnel.estimation import estimate, impute, output_reader
from privacyfunnel.estimation.identification import frequency_band
from privacyfunnel.mechanisms.chain import ChainMechanism
from privacyfunnel.mechanisms.chain_step import UNIT
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP
from privacyfunnel.release.output_layout import output_layout

ROWS = 3000
NAMES = ("colour", "size", "age")


def people() -> pl.DataFrame:
    rng = np.random.default_rng(2)
    colour = rng.choice(["red", "green", "blue"], p=[0.5, 0.3, 0.2], size=ROWS)
    size = np.where(rng.random(ROWS) < np.where(colour == "red", 0.7, 0.4), "large", "small")
    age = rng.choice(["old", "young"], p=[0.3, 0.7], size=ROWS)
    ill = np.where(rng.random(ROWS) < 0.3 + 0.2 * (colour == "red") + 0.2 * (size == "small"), "yes", "no")
    return pl.DataFrame({"ill": ill, "colour": colour, "size": size, "age": age})


PEOPLE = people()


JOINT = Joint.from_table(PEOPLE, secret="ill", publish=NAMES)
PLACE = {labels: x for x, labels in enumerate(JOINT.values)}
CODES = np.array([PLACE[row] for row in PEOPLE.select(NAMES).rows()])


def chained() -> Chain:
    return chain_protocol(JOINT, LIP(0.5), order=("colour", ("age", "size")), first=0.6)


@cache
def released(seed: int = 1) -> tuple[SealedProtocol, pl.DataFrame]:
    """The protocol, and the table drawn with it; a chain of two steps, made for its own rows."""
    stream = KeyStream.from_seed(seed)
    sealed = chained().seal()
    drawn = sealed.mechanism.draw(CODES, stream.rows(0, ROWS))
    return sealed, pl.DataFrame(output_layout(sealed).columns(drawn))


def shares(*columns: str) -> dict[tuple[str, ...], float]:
    return {row[:-1]: row[-1] / ROWS for row in PEOPLE.group_by(columns).len().rows()}


def path_chance(law: ChainMechanism, x: int, shown: dict[int, int]) -> float:
    """P(y | x) followed context by context, in Python's own way."""
    chance, context = 1.0, 0
    for number, step in enumerate(law.steps):
        wanted = [shown[j] for j in step.attributes]
        outputs = [
            o
            for o, (k, labels) in enumerate(zip(step.context_of_output, step.labels.tolist(), strict=True))
            if k == context and labels == wanted
        ]
        if not outputs:
            return 0.0
        entry = (step.output == outputs[0]) & (step.value == law.values_of(number)[x])
        chance *= float(step.numerator[entry].sum()) / UNIT
        if number + 1 < len(law.steps):
            reached = np.flatnonzero(law.steps[number + 1].parent_output == outputs[0])
            if not len(reached):  # nothing more is said
                silent = all(
                    shown.get(j, code) == code
                    for step in law.steps[number + 1 :]
                    for j, code in zip(step.attributes, step.default_labels.tolist(), strict=True)
                )
                return chance if silent else 0.0
            context = int(reached[0])
    return chance


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_the_channel_of_a_chain_follows_its_paths_and_leaves_nothing_out(rows: int) -> None:
    chain = chained()
    sealed = SolvedChain(chain, chain.grow(rows)).seal()
    law = sealed.mechanism
    assert isinstance(law, ChainMechanism)
    assert len(law.steps) == 2
    part = output_reader.OutputReader.from_protocol(sealed)
    channel, way = part.model.means, output_layout(sealed).restrict(part.mechanism, part.attributes)
    np.testing.assert_allclose(channel.sum(axis=1), 1)
    assert {tuple(row) for row in part.combos.tolist()} == {
        tuple(law.combos[i, list(part.attributes)].tolist()) for i in range(len(law.combos))
    }
    seen = 0
    for codes in product(*(range(len(labels)) for labels in law.columns)):
        row = pl.DataFrame({name: [law.columns[j][codes[j]]] for j, name in enumerate(NAMES)})
        output = int(part.mechanism.observation_codes(way.recover_codes(row))[0, 0])
        for i, combo in enumerate(part.combos.tolist()):
            x = int(np.flatnonzero((law.combos[:, list(part.attributes)] == combo).all(axis=1))[0])
            by_hand = path_chance(law, x, dict(enumerate(codes)))
            assert (channel[i, output] if output >= 0 else 0.0) == pytest.approx(by_hand)
        seen += output >= 0
    assert seen == channel.shape[1]


def test_intervals_from_columnwise_protocols_cover() -> None:
    tables = [("colour",), ("size",), ("age",), ("age", "size")]
    covered, cells = 0, 0
    for seed in range(12):
        sealed, frame = released(seed)
        for table in estimate(sealed, frame, columns=tables):
            truth = shares(*table.columns)
            assert {cell.labels for cell in table} == set(truth)
            covered += sum(cell.lower <= truth[cell.labels] <= cell.upper for cell in table)
            cells += len(table.cells)
    # Cells of one draw hang together, so 132 of them count like about 50: below 80 % is 5 standard errors away.
    assert covered / cells > 0.8


def test_contexts_that_the_file_of_a_chain_does_not_hold_identify_nothing() -> None:
    stream = KeyStream.from_seed(1)
    chain = chained()
    sealed = SolvedChain(chain, chain.grow(4)).seal()
    frame = pl.DataFrame(output_layout(sealed).columns(sealed.mechanism.draw(CODES[:4], stream.rows(0, 4))))
    found = estimate(sealed, frame)
    assert all(cell.identified for cell in found.table("colour"))
    assert not any(cell.identified for cell in found.table("size"))
    assert "does not identify 2 of 2" in found.table("size").notes[0]


def test_columns_beyond_the_size_that_is_worked_with_are_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed, frame = released()
    law = sealed.mechanism
    assert isinstance(law, ChainMechanism)
    first = [NAMES[j] for j in law.steps[0].attributes]
    monkeypatch.setattr(output_reader, "LARGEST_CHANNEL", 30)
    found = estimate(sealed, frame)
    for name in NAMES:
        table = found.table(name)
        assert table.rows == ROWS
        assert all(cell.identified == (name in first) for cell in table)
        assert name in first or table.notes[0].startswith("Not estimated: ")
    monkeypatch.setattr(output_reader, "LARGEST_CHANNEL", 1)
    for ask in (
        lambda: estimate(sealed, frame),
        lambda: estimate(sealed, frame, columns=[NAMES]),
        lambda: impute(sealed, frame),
    ):
        with pytest.raises(SizeError, match="Ask for fewer columns"):
            ask()


def test_records_of_columnwise_protocols_are_completed_with_all_their_columns() -> None:
    sealed, frame = released()
    (completed,) = impute(sealed, frame, m=1)
    assert set(completed.columns) == set(NAMES)
    for (colour, size), share in shares("colour", "size").items():
        drawn = ((completed["colour"] == colour) & (completed["size"] == size)).mean()
        assert drawn == pytest.approx(share, abs=0.12)


def test_labels_that_no_path_has_are_refused() -> None:
    sealed, frame = released()
    strange = frame.with_columns(size=pl.lit("huge"))
    with pytest.raises(TableError, match="different entries do not occur"):
        estimate(sealed, strange)


def test_the_band_of_a_frequency_holds_for_rare_outputs() -> None:
    low, high = frequency_band(np.array([0.0, 0.001, 0.5, 1.0]), 1000, 0.95)
    tail = 0.05 / 8
    assert low[0] == 0
    assert high[3] == 1
    assert (1 - high[0]) ** 1000 == pytest.approx(tail)
    assert 1 - (1 - low[1]) ** 1000 == pytest.approx(tail)
    assert low[2] == pytest.approx(1 - high[2])
