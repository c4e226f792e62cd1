r"""What real or synthetic records tell somebody who knows one column of a person, under the model. It is not promised.

To whoever knows x_j = v, record y is as likely under secret s as

.. math:: P(y \mid s, v) &= \tilde p(y)
   \Big( [y_j = v]\, a(y) \frac{r_s(y)}{\tilde p(v)\, r_s(v)} + W_{k(y)}(s, v) \Big), \\
   W_k(s, v) &= \mathbb E\Big[(1 - a(x)) \frac{\alpha_{k(x), k}}{\bar\alpha_{k(x)}} \,\Big|\, s, x_j = v\Big] .

A row that agrees with v is probably real, and then tells what it has besides: no guard of Theorem 66 bounds that. W is
simulated; rows are those of the table, each drawn once by a public seed.
"""

from __future__ import annotations

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.formatting import format_percent
from privacyfunnel.mechanisms.decoy_slacks import acceptance_rates, left_out
from privacyfunnel.mechanisms.likely_records import simulate_codes
from privacyfunnel.mechanisms.real_or_synthetic import KEEP_BITS, RealOrSynthetic
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.model.comparisons import log_ratio
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.published.tree_model import CodeArray
from privacyfunnel.release.findings.attacker_leaks import SideChannel

SEED = 12  # of the simulation and of the trial draw: public, and never that of a release
SIMULATED, MOST_ROWS = 1 << 17, 1 << 15


def measure_known_columns(mechanism: RealOrSynthetic, joint: Joint) -> SideChannel:
    """The column whose knowledge helps most: what it helps at most, on a trial draw, and for how many rows beyond ε."""
    model = mechanism.model
    simulated = simulate_codes(model, KeyStream.from_seed(SEED), SIMULATED)
    ratios = model.ratios(simulated)
    classes = mechanism.classify(ratios, simulated)
    rates = acceptance_rates(mechanism, np.bincount(classes, minlength=mechanism.classes) / SIMULATED)
    replaced = left_out(mechanism, ratios, classes)[:, None] * ratios
    rng = np.random.default_rng(SEED)
    own = joint.combos[rng.choice(joint.a, min(int(joint.weights.sum()), MOST_ROWS), p=joint.p_x)].astype(np.int64)
    drawn = mechanism.draw(own, KeyStream.from_seed(SEED + 1).rows(0, len(own)))
    worst, beyond, name = 0.0, -1.0, ""
    for j, attribute in enumerate(model.attributes):
        if attribute.name in mechanism.promise.known_columns:
            continue
        mass = model.marginal([j]).astype(np.float64)
        p_sv = mass / mass.sum()  # c × labels
        moved = np.zeros((len(attribute.labels), mechanism.classes, len(p_sv)))
        np.add.at(moved, (simulated[:, j], classes), replaced)
        synthetic = np.einsum("vjs,jk->vks", moved, rates) / SIMULATED
        synthetic /= np.maximum((p_sv / p_sv.sum(axis=1, keepdims=True)).T, 1e-300)[:, None, :]  # by p̃(v | s)
        leak = _leaks(mechanism, p_sv, own[:, j], drawn, j, synthetic)
        share = float((leak > mechanism.promise.epsilon).mean())
        worst = max(worst, float(leak.max()))
        if share > beyond:
            beyond, name = share, attribute.name
    if not name:
        return SideChannel(worst, worst, "each column by itself is covered")
    limit = f"beyond the ε of records for {format_percent(beyond, up=True)} of rows"
    return SideChannel(worst, np.inf, f"each column by itself, on a trial draw; {limit} where {name} is known")


def _leaks(
    mechanism: RealOrSynthetic, p_sv: FloatArray, known: IntArray, drawn: CodeArray, place: int, synthetic: FloatArray
) -> FloatArray:
    """By how much each drawn row moves a belief that the promise is about, of whoever knows this column."""
    ratios = mechanism.model.ratios(drawn)
    classes = mechanism.classify(ratios, drawn)
    keep = mechanism.keep_numerators(ratios, classes) / 2.0**KEEP_BITS
    shares = mechanism.model.shares / mechanism.model.shares.sum()
    given = p_sv[:, known].T  # p̃(s, v), n × c; r_s(v) p̃(v) = p̃(s, v) / p̃(s)
    chance = ((drawn[:, place] == known) * keep)[:, None] * ratios * shares / np.maximum(given, 1e-300) + synthetic[
        known, classes
    ]
    members = mechanism.events.members.astype(np.float64)
    held = given @ members.T
    by_event = ((given * chance) @ members.T) / np.where(held > 0, held, np.nan)  # what cannot be is not compared
    first, second = (by_event[:, mechanism.events.pairs[:, side]] for side in (0, 1))
    return np.asarray(np.where(np.isnan(first + second), 0.0, log_ratio(first, second)).max(axis=1))
