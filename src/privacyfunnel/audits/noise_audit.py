r"""Noise of a private design: are the stated noisy counts plausible for the counts of this table?

The certificate of a private design rests on the noisy counts of its file. With the owner's table the noise itself is
known, Z = stated − counted, and must look drawn from the stated discrete Laplace distribution,
:math:`\Pr[Z = k] \propto t^{|k|}`, :math:`t = e^{-r}`. Every test below bounds its false-alarm probability for any
number of cells, by the exact tail or by Chernoff's inequality with the exact generating function; none is asymptotic.

.. math:: \Pr[|Z| \ge b] = \frac{2 t^b}{1 + t}, \qquad
   E\,e^{\theta Z} = \frac{(1 - t)^2}{(1 - t e^{\theta})(1 - t e^{-\theta})}, \qquad
   E\,e^{\theta |Z|} = \frac{1 - t}{1 + t} \cdot \frac{1 + t e^{\theta}}{1 - t e^{\theta}}.

A file names no secret. Without its domain the rows of the file are assigned to the secrets of the table so that
:math:`T = \sum r |Z|` is least, and T alone is tested: the least T is at most that of the true assignment, and since Z
is symmetric and unimodal no wrong assignment makes a small T more likely (Anderson): c! times the bound of the true one
bounds its lower tail.

A published model states sums of such counts and the variance V of the noise in each. As E e^{θZ} is
1 / (1 − v(cosh θ − 1)) for noise of variance v, and its characteristic function 1 / (1 + v(1 − cos u)), a sum of noises
of variance V altogether has no larger moments E e^{θZ} and E e^{−θ|Z|} than one noise of that variance, which is used
for it; E e^{θ|Z|} = 2 E e^{θZ} − E e^{−θ|Z|}, the last at least e^{−θ√V}. Noise also chose the labels that are listed:
bounds are multiplied by the number of choices there were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.audits.matched_table import MatchedTable
from privacyfunnel.errors import GuaranteeError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.credal.noisy_sample_rule import NoisySampleRule
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.published.noise import noise_variance
from privacyfunnel.model.published.noisy_counts import NoisyCounts
from privacyfunnel.model.published.table_model import EachModel, MeasuredCounts, TableModel, noise_rate

FALSE_ALARM = 1e-9  # the probability that an honest private design is refused
LARGEST_SPREAD = 20  # of ε_c: no design gives a count less than this part of it …
SUMMED = 2  # … or sums more than so many counts of a secret
MOST_COSTS = 10**8  # of an assignment: secrets² × values
EXPONENTS = np.concatenate([1 - np.geomspace(1e-4, 0.999, 400), -np.geomspace(1e-3, 1e3, 400)])  # of Chernoff's bound


@dataclass(frozen=True, slots=True)
class NoiseAudit:
    """The stated noise is plausible for this table: a bound of the p-value of all tests together."""

    p_value: float
    tests: int
    by_label: bool  # False: secrets were assigned by likelihood, as the file names none and no domain was given

    def __str__(self) -> str:
        how = "cell by cell" if self.by_label else "in total only, as the file names no secret and no domain was given"
        return f"plausible for these counts {how}, p ≤ {min(1.0, self.p_value):.3g} (refused below {FALSE_ALARM:g})"


def audit_noise(sealed: SealedProtocol, found: MatchedTable, secrets: Sequence[str]) -> NoiseAudit | None:
    """Test the noise of a private design; None for any other protocol. `secrets` are its labels, if known.

    Raises
    ------
    GuaranteeError
        If the stated counts are not those of this table with the stated noise.
    """
    population = sealed.promise.population
    if population is None or not isinstance(population.rule, NoisySampleRule):
        return None
    stated, joint = population.rule.counts, found.joint
    if stated.rows != joint.total:
        raise GuaranteeError(
            f"the protocol file states noisy counts of {stated.rows:,} rows; this table has {joint.total:,}. "
            "Audit a private design with the table it was designed for; without that its noise is not checked."
        )
    counts = np.zeros((joint.c, stated.cells.shape[1]), dtype=np.int64)
    np.add.at(counts.T, found.inputs[: joint.a] % len(sealed.domain.combos), joint.weights.T)
    labels = sealed.domain.secrets or tuple(secrets)
    place = {label: number for number, label in enumerate(labels)}
    if labels and not place.keys() >= set(joint.secrets):
        raise GuaranteeError(
            "every secret of this table must be in the domain of the private design; some are not. It was made for "
            "another table: design again."
        )
    if labels:
        at = np.array([place[label] for label in joint.secrets])
        log_p, tests = _test_cells(stated, _place_rows(counts, at, len(stated.cells)))
    else:
        log_p, tests = _test_total(stated, _assign_rows(counts, stated), math.lgamma(len(stated.cells) + 1)), 2
    p_value = math.exp(min(0.0, log_p + math.log(tests)))
    if not p_value >= FALSE_ALARM:
        raise GuaranteeError(
            f"the noisy counts of the protocol file must be those of this table with the noise they state; an honest "
            f"design has such counts with a probability below {FALSE_ALARM:g}. The file was altered, or made for "
            "another table: do not publish it, and design again."
        )
    return NoiseAudit(p_value, tests, bool(labels))


def audit_model_noise(model: TableModel | EachModel, found: MatchedTable) -> NoiseAudit | None:
    """Test the noise of a published model; None where its counts are not stated, or those of other rows.

    The tables of several secrets are tested one by one, each at its part of the false alarms.

    Raises
    ------
    GuaranteeError
        If the stated counts are not those of this table with the stated noise.
    """
    if isinstance(model, TableModel):
        return _audit_table_noise(model, found, 1)
    counts, parts = found.encoding.contingency, model.parts.values()
    by_secret = [replace(found, joint=Joint.from_contingency(counts.select_secret(j))) for j in range(len(parts))]
    each = [_audit_table_noise(part, mine, len(parts)) for part, mine in zip(parts, by_secret, strict=True)]
    tested = [part for part in each if part is not None]
    if len(tested) < len(each):
        return None
    return NoiseAudit(min(part.p_value for part in tested), sum(part.tests for part in tested), True)


def _audit_table_noise(model: TableModel, found: MatchedTable, tables: int) -> NoiseAudit | None:
    joint, stated = found.joint, model.counts
    if stated is None or model.rows != joint.total:
        return None
    place = {label: s for s, group in enumerate(filter(None, model.groups)) for label in group}
    counts = np.zeros_like(stated.cells)
    for label, row in zip(joint.secrets, joint.weights, strict=True):
        if label in place:
            np.add.at(counts[place[label]], found.inputs[: joint.a], row)
    choices = len(place) * math.log(2)  # which secrets are one group
    if model.delta:
        choices += _log_choices(max(joint.c, len(place)), len(place)) + math.log(counts.shape[1])
        choices += sum(_log_choices(model.rows, len(at.labels)) for at in joint.attributes)
    sizes = np.array([len(group) for group in model.groups if group])[:, None]
    largest = SUMMED * sizes * noise_variance(model.epsilon / LARGEST_SPREAD)
    tests = counts.size + 2
    log_p = _test_sums(stated, np.abs(stated.cells - counts)) + choices + math.log(tests * tables)
    if not (log_p >= math.log(FALSE_ALARM) and (stated.variance <= largest).all()):
        raise GuaranteeError(
            "the noisy counts of the model in the protocol file must be those of this table with the noise they state; "
            f"an honest design has such counts with a probability below {FALSE_ALARM:g}. The file was altered, or made "
            "for another table: do not publish it, and design again."
        )
    return NoiseAudit(math.exp(min(0.0, log_p)), tests, True)


def _log_choices(of: int, some: int) -> float:
    """ln of the number of ways to choose some of so many; of more there is one."""
    return 0.0 if some >= of else math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def _test_sums(stated: MeasuredCounts, sizes: IntArray) -> float:
    """ln of the smallest bound for these |Z|: of each, and that T is at least, and at most, as large as it is."""
    bounds = [0.0]
    total = 0.0
    above, below = EXPONENTS[EXPONENTS > 0], EXPONENTS[EXPONENTS < 0]
    up, down = np.zeros_like(above), np.zeros_like(below)
    for variance in np.unique(stated.variance):
        alike = sizes[stated.variance == variance]
        rate = noise_rate(float(variance))
        moment = -np.log1p(-variance * (np.cosh(above * rate) - 1))  # ln E e^{θZ}
        bounds.append(math.log(2) + float((moment - above * rate * int(alike.max())).min()))
        total += rate * float(alike.sum())
        up = up + len(alike) * np.log(2 * np.exp(moment) - np.exp(-above * rate * math.sqrt(variance)))
        down = down + len(alike) * _log_mean_of_size(rate, below * rate)
    return min(*bounds, float(np.min(up - above * total)), float(np.min(down - below * total)))


def _place_rows(counts: IntArray, at: IntArray, secrets: int) -> IntArray:
    placed = np.zeros((secrets, counts.shape[1]), dtype=np.int64)
    placed[at] = counts
    return placed


def _assign_rows(counts: IntArray, stated: NoisyCounts) -> IntArray:
    """The counts with a row per secret of the file, assigned so that T is least; secrets of the file may be absent."""
    from scipy.optimize import linear_sum_assignment

    secrets = len(stated.cells)
    if len(counts) > secrets or secrets**2 * counts.shape[1] > MOST_COSTS:
        raise GuaranteeError(
            f"the file of the private design has {secrets:,} secrets, this table {len(counts):,}: they cannot be "
            f"matched without labels. Name its domain with {hint('domain', 'domain.json')}."
        )
    padded = _place_rows(counts, np.arange(len(counts)), secrets)
    apart = np.abs(stated.cells[:, None, :] - padded[None, :, :]).sum(axis=2) * float(stated.cell_rate)
    apart += np.abs(stated.totals[:, None] - padded.sum(axis=1)[None, :]) * float(stated.total_rate)
    return np.asarray(padded[linear_sum_assignment(apart)[1]])


def _test_cells(stated: NoisyCounts, counts: IntArray) -> tuple[float, int]:
    """ln of the smallest bound and the number of tests: each cell and total, each sum over a secret or value, T."""
    noise, totals = stated.cells - counts, stated.totals - counts.sum(axis=1)
    rate, total_rate = float(stated.cell_rate), float(stated.total_rate)
    c, a = noise.shape
    bounds = [
        _cell_tail(np.abs(noise), rate),
        _cell_tail(np.abs(totals), total_rate),
        _sum_tail(np.abs(noise.sum(axis=1)), rate, a),
        _sum_tail(np.abs(noise.sum(axis=0)), rate, c),
        _test_total(stated, counts, 0.0),
    ]
    return min(bounds), noise.size + len(totals) + c + a + 2


def _test_total(stated: NoisyCounts, counts: IntArray, log_assignments: float) -> float:
    """ln of the smaller of two Chernoff bounds: that T is at least, and at most, as large as it is."""
    rates = np.array([float(stated.cell_rate), float(stated.total_rate)])
    noise, totals = np.abs(stated.cells - counts), np.abs(stated.totals - counts.sum(axis=1))
    total = float(rates @ [noise.sum(), totals.sum()])
    log_means = np.array([_log_mean_of_size(rate, EXPONENTS * rate) for rate in rates])
    bounds = np.array([noise.size, len(totals)]) @ log_means - EXPONENTS * total
    above = EXPONENTS > 0
    return min(0.0, float(bounds[above].min()), float(bounds[~above].min()) + log_assignments)


def _cell_tail(sizes: IntArray, rate: float) -> float:
    """ln Pr[|Z| ≥ b] of the largest b."""
    largest = int(sizes.max())
    return 0.0 if largest == 0 else math.log(2 / (1 + math.exp(-rate))) - rate * largest


def _sum_tail(sizes: IntArray, rate: float, terms: int) -> float:
    """ln of Chernoff's bound of Pr[|Z₁ + … + Zₘ| ≥ b] for the largest b."""
    theta = EXPONENTS[EXPONENTS > 0] * rate
    t = math.exp(-rate)
    log_mean = 2 * math.log1p(-t) - np.log1p(-t * np.exp(theta)) - np.log1p(-t * np.exp(-theta))
    return min(0.0, math.log(2) + float((terms * log_mean - theta * int(sizes.max())).min()))


def _log_mean_of_size(rate: float, theta: FloatArray) -> FloatArray:
    """ln E e^{θ|Z|}."""
    t = math.exp(-rate)
    shifted = np.exp(theta - rate)
    return np.asarray(math.log((1 - t) / (1 + t)) + np.log1p(shifted) - np.log1p(-shifted))
