"""Private designs: the file follows from noisy counts alone, and end to end it tells no more than is allowed."""

import json
import stat
from fractions import Fraction
from functools import cache
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.attacks import (
    all_other_rows,
    all_other_rows_with_noise,
    allowed,
    candidates,
    everybodys_values,
    everybodys_values_with_noise,
    exponent,
    files,
    small_tables,
)

from privacyfunnel import LDP, LIP, SRLIP, Joint, design, optimal, sanitise
from privacyfunnel.errors import ParameterError
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, seal
from privacyfunnel.model.published.noise import NOISES
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.tables.coding.domain_file import DomainFile, domain_from_text
from tests.commands import said, told

SHARES = np.array([[0.25, 0.15, 0.1], [0.1, 0.2, 0.2]])


def people(seed: int = 0, rows: int = 3000) -> pl.DataFrame:
    """A table of illness and town."""
    cells = np.random.default_rng(seed).choice(6, rows, p=SHARES.ravel())
    return pl.DataFrame(
        {
            "illness": pl.Series(["flu", "none"]).gather(cells // 3),
            "town": pl.Series(["Bruges", "Ghent", "Ostend"]).gather(cells % 3),
        }
    )


def listed(**labels: list[str]) -> DomainFile:
    columns = {name: {"labels": some, "missing": False} for name, some in labels.items()}
    return domain_from_text(json.dumps({"format": "privacyfunnel domain", "version": 1, "columns": columns}))


DOMAIN = listed(illness=["flu", "none"], town=["Bruges", "Ghent", "Ostend"])


def made(frame: pl.DataFrame, **more: object) -> SealedProtocol:
    asked = {"secret": "illness", "publish": "town", "promise": LIP(2.0), "design_epsilon": 1.0, "domain": DOMAIN}
    asked["prior"] = "population"
    return design(frame, ReleaseSpec(**asked | more))  # type: ignore[arg-type]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> NoisyCounts:
    """Noisy counts that come out whatever the table is."""
    counts = NoisyCounts(
        cells=np.array([[812, 430, 280], [316, 590, 611]]),
        totals=np.array([1492, 1517]),
        rows=3000,
        epsilon=Fraction(1),
        cell_rate=Fraction(9, 20),
        total_rate=Fraction(1, 20),
    )
    monkeypatch.setattr(NoisyCounts, "draw", lambda *_: counts)
    return counts


@pytest.mark.parametrize("method", ["optimal", "auto"])
@pytest.mark.parametrize("promise", [LIP(2.0), LDP(1.7)])
def test_the_file_follows_from_the_noisy_counts_alone(known: NoisyCounts, method: str, promise: LIP | LDP) -> None:
    one = made(people(0), method=method, promise=promise)
    same = people(1).sort("illness")
    other = made(same.with_columns(town=same["town"].reverse()), method=method, promise=promise)
    assert one.to_text() == other.to_text()
    assert one.information > 0


def test_the_file_of_an_ordinary_design_does_not() -> None:
    ordinary = {"prior": "table", "design_epsilon": None, "domain": None}
    assert made(people(0), **ordinary).to_text() != made(people(1), **ordinary).to_text()


def test_what_is_saved_is_checked_again_from_the_file_alone(tmp_path: Path) -> None:
    sealed = made(people())
    sealed.save(tmp_path / "protocol.json")
    again = SealedProtocol.load(tmp_path / "protocol.json")
    assert again.to_json() == sealed.to_json()
    law, joint = again.certified_inputs(again.mechanism, Joint.from_counts([[1, 1], [1, 1]]))
    assert certify(law, again.promise, joint) == sealed.epsilon <= again.epsilon <= 1.0
    assert again.promise.population is not None
    assert again.promise.population.rule.design_epsilon == 1


@pytest.mark.parametrize("promise", [LIP(2.0), LDP(2.0)])
def test_it_keeps_its_promise_for_the_people(promise: LIP | LDP) -> None:
    """Of 12 designs at 95 %, five that break it would be a chance of some 1e-4 if 5 % were not kept."""
    truth = Joint.from_probabilities(SHARES)
    leaks = [promise.leakage(truth, made(people(seed), promise=promise).mechanism.protocol) for seed in range(12)]
    assert sum(leak > 1.0 for leak in leaks) < 5
    assert max(leaks) > 0.3  # and is no constant


def test_values_that_the_table_does_not_have_are_inputs_all_the_same() -> None:
    wider = listed(illness=["flu", "none"], town=["Bruges", "Ghent", "Lier", "Ostend"])
    sealed = made(people(), domain=wider)
    assert sealed.mechanism.inputs == 4
    release = sanitise(
        people(),
        ReleaseSpec(
            secret="illness", publish="town", epsilon=2, prior="population", design_epsilon=1, domain=wider, seed=3
        ),
    )
    assert release.table.height == 3000
    assert any("counts with noise of ε = 1" in sentence for sentence in release.not_promised)


def test_seeing_the_secret_and_several_columns() -> None:
    frame = people().with_columns(sex=pl.Series(["f", "m"] * 1500))
    wider = listed(illness=["flu", "none"], town=["Bruges", "Ghent", "Ostend"], sex=["f", "m"])
    sealed = made(frame, domain=wider, publish=["town", "sex"], promise=SRLIP(2.0), gap=0.05)
    assert sealed.mechanism.inputs == 6
    seeing = made(people(), sees_secret=True, promise=LDP(2.0), gap=0.01)
    assert seeing.mechanism.sees_secret


def test_what_cannot_be_designed_privately_is_refused() -> None:
    with pytest.raises(ParameterError, match="must take labels and bins from a domain file"):
        made(people(), domain=None)
    with pytest.raises(ParameterError, match="A domain file is for a mechanism made from counts with noise"):
        made(people(), prior="table", design_epsilon=None)
    with pytest.raises(ParameterError, match="too few for that"):
        made(people(rows=100))


def test_the_command_makes_audits_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, domain, into = tmp_path / "people.csv", tmp_path / "domain.json", tmp_path / "out"
    people().write_csv(table)
    domain.write_text(DOMAIN.to_text(), encoding="utf-8")
    short = tmp_path / "short.json"
    short.write_text(listed(illness=["flu", "none"], town=["Ghent"]).to_text(), encoding="utf-8")
    missing = people().filter(pl.col("town") != "Ghent").height
    asked = ["sanitise", table, "--secret", "illness", "--publish", "town", "-e", 1.5, "--into", into, "--no-report"]
    asked.append("--prior=population")
    for more, sentence in (
        (["--design-epsilon", 0.5, "--domain", short], f"'{short}' knows; {missing} rows hold others"),
        (["--design-epsilon", 0.5], "domain file"),
        (["--domain", domain, "--prior=table"], "A domain file is for a mechanism made from counts with noise"),
        (["--design-epsilon", -0.5, "--domain", domain], "between 0.001 and 100; it is -0.5"),
        (["--design-epsilon", 0.5, "--domain", domain, "--bin", "town=1,2"], "Leave out --bin"),
    ):
        code, out, err = said(capsys, *asked, *more)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert sentence in err
    assert not into.exists()
    found = told(*asked, "--design-epsilon", 0.5, "--domain", domain, "--design-noise", "opendp")
    assert found["certified"] <= 1.5
    protocol = into / "public" / "protocol.json"
    assert json.loads(protocol.read_text(encoding="utf-8"))["promise"]["population"]["design"]["epsilon"] == "1/2"
    assert stat.S_IMODE(protocol.stat().st_mode) != 0o600  # as the umask says …
    code, _, err = said(
        capsys, "audit", protocol, table, "--secret", "illness", "--sanitised", into / "public" / "sanitised.csv"
    )
    assert code == 0, err
    code, out, _ = said(capsys, *asked, "--force", "--prior=table", "--details")
    assert code == 0
    protocol = into / "owner" / "protocol.json"
    assert stat.S_IMODE(protocol.stat().st_mode) == 0o600  # … and what was made from the counts themselves, not
    assert "can work out a person's illness, and even the table alone is not protected against them" in out
    assert "not protected against somebody who knows all other rows; --prior model is" in out
    page = (into / "public" / "README.html").read_text(encoding="utf-8")
    assert "somebody who knows all other rows</th><td>Not promised: the table itself" in page.replace(
        '<td class="n">', "<td>"
    )


# -- the theorem, by exhaustion ------------------------------------------------------------------------------------

HALF = Fraction(1, 2)  # t = e^{−r} of every count, so that e^{ε_c} = t⁻² = 4: all chances are rational
TRUTH = Joint.from_counts([[9, 3], [4, 8]])  # p*
P_X_GIVEN_S = [[Fraction(int(w), int(row.sum())) for w in row] for row in TRUTH.weights]
ROWS = list(product(range(2), repeat=2))  # (s, x) that another person may have
FEWEST, MOST = 0, 2  # noisy counts are brought between these: post-processing


def chance(seen: int, count: int) -> Fraction:
    """Pr[count + Z, brought between 0 and 2, is `seen`]: the tails belong to the ends."""
    if seen in (FEWEST, MOST):
        return HALF ** abs(seen - count) / (1 + HALF)
    return (1 - HALF) / (1 + HALF) * HALF ** abs(seen - count)


def chance_of_all(seen: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> Fraction:
    counts = [rows.count(cell) for cell in ROWS]
    return np.prod([chance(m, n) for m, n in zip(seen, counts, strict=True)], initial=Fraction(1))  # type: ignore


@cache
def channel(seen: tuple[int, ...], promise: LIP | LDP) -> list[list[Fraction]]:
    """q_m, exactly as it is drawn: the best protocol for the noisy counts which keeps the promise at p*."""
    cells = np.array(seen).reshape(2, 2)
    noisy = NoisyCounts(cells, cells.sum(axis=1), 2, Fraction(2), Fraction(1, 2), Fraction(1, 2))
    joint = Joint.from_counts(noisy.weights)
    wider = promise.for_priors([TRUTH])
    best = optimal(joint, wider, gap=1e-3)
    law = (best.sealed or seal(best.protocol, wider, joint)).mechanism
    rows = [dict(row) for row in law.to_json()["rows"]]
    return [[Fraction(int(row.get(y, 0)), 2**64) for y in range(len(law.to_json()["outputs"]))] for row in rows]


@pytest.mark.parametrize("promise", [LDP(1.0), LIP(1.0)])
def test_file_and_rows_together_tell_no_more_than_both_budgets(promise: LIP | LDP) -> None:
    """All tables of two rows, all noisy counts, all outputs of both people, in fractions."""
    from privacyfunnel.mechanisms.exact_arithmetic import exp_below

    limit, largest = exp_below(1.0) / HALF**2, Fraction(0)
    shares = [Fraction(int(w), int(TRUTH.weights.sum())) for w in TRUTH.weights.sum(axis=1)]
    mass = Fraction(0)
    for other, seen in product(ROWS, product(range(FEWEST, MOST + 1), repeat=4)):
        q = channel(seen, promise)
        told = [chance_of_all(seen, (other, mine)) for mine in ROWS]  # Pr[m | the other row, (s, x)]
        for y, theirs in product(range(len(q[0])), repeat=2):
            given = [
                sum(P_X_GIVEN_S[s][x] * told[2 * s + x] * q[x][y] * q[other[1]][theirs] for x in range(2))
                for s in range(2)
            ]
            mass += sum(share * one for share, one in zip(shares, given, strict=True))
            if not any(given):
                continue
            compared = [given[0], given[1]]
            if isinstance(promise, LIP):
                everybody = sum(share * one for share, one in zip(shares, given, strict=True))
                ratios = [Fraction(one, everybody) for one in compared]
                ratios += [1 / ratio for ratio in ratios]
            else:
                ratios = [Fraction(compared[0], compared[1]), Fraction(compared[1], compared[0])]
            assert max(ratios) <= limit
            largest = max(largest, *ratios)
    assert mass == len(ROWS)  # nothing was left out: for every other row the chances sum to 1
    assert largest > exp(1.0)  # ε alone would not do


# -- the attacks, small --------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def test_knowing_all_other_rows_an_ordinary_file_gives_the_secret_away_and_a_private_one_does_not() -> None:
    counts = np.array([[40, 13, 22], [11, 31, 9]])
    assert all_other_rows(counts, 0, 1, files(LIP(1.0))["as it is"]).belief == 1.0
    for epsilon in (Fraction(1), Fraction(1, 2), Fraction(1, 10)):
        most = allowed(2, float(epsilon))
        guesses = all_other_rows_with_noise(counts, 0, 1, epsilon, 400)
        assert within(sum(guess.right for guess in guesses), 400, most)
        assert max(guess.belief for guess in guesses) <= most * (1 + 1e-12)  # of floats; in fractions below
        seen = NoisyCounts.draw(counts, epsilon, NOISES["own"])
        one, other = (exponent(seen, table) for table in candidates(counts, 0, 1))
        assert abs(one - other) <= epsilon


def test_knowing_everybodys_values_an_ordinary_file_gives_the_secret_away_and_a_private_one_does_not() -> None:
    smalls = list(small_tables(3, rows=8, values=2, seed=4))
    file = files(LIP(0.5))["as it is"]
    assert all(everybodys_values(small, file).right == 1.0 for small in smalls)
    epsilon = Fraction(1, 2)
    guesses = [everybodys_values_with_noise(small, epsilon) for small in smalls for _ in range(60)]
    assert within(sum(guess.right for guess in guesses), 180, allowed(2, 0.5))
    assert max(guess.belief for guess in guesses) <= allowed(2, 0.5) * (1 + 1e-12)


def within(right: float, tries: int, most: float) -> bool:
    """Whether so many right guesses may come of chances of at most `most`."""
    from scipy import stats

    return bool(right <= stats.binom.isf(FALSE_ALARM, tries, most))


@pytest.mark.parametrize(
    ("rows", "limit"), [((2000, 2000, 1500, 260), 200 + 566), ((700, 690, 680, 260), 200)], ids=["large", "small"]
)
def test_a_secret_that_noise_may_have_lifted_above_the_limit_is_rare_there_too(
    rows: tuple[int, ...], limit: int
) -> None:
    """Four standard deviations of its noise, √2 / .01 each; unless all secrets but one would be rare."""
    labels = ["cold", "flu", "gout", "none"]
    frame = pl.DataFrame({"illness": np.repeat(labels, rows), "town": ["Bruges", "Ghent"] * (sum(rows) // 2)})
    domain = listed(illness=labels, town=["Bruges", "Ghent"])
    sealed = made(frame, domain=domain, design_epsilon=0.2, method="randomised-response", seed=1)
    people = sealed.promise.population
    assert people is not None
    assert people.rule.rare == limit
