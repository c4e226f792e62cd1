r"""What an attacker learns at worst: the probability of each secret before and after a record, and the limits.

An output y changes the probability of secret s from p(s) to

.. math:: p(s \mid y) = \sum_x p(s, x)\, q(y \mid x) \,/\, \sum_{s', x} p(s', x)\, q(y \mid x),

and the page shows the smallest and the largest value over all y. If there are too many outputs to enumerate, it shows
only the limits of the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacyfunnel.arrays import FloatArray
from privacyfunnel.formatting import format_percent
from privacyfunnel.mechanisms.leak_profile import LeakProfile
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.each_secret import split_columns
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.release.findings.attacker_leaks import Linkage
from privacyfunnel.report.bars import Bar, BarChart, Mark, percent_ticks, scale_end, select_keys, select_labels
from privacyfunnel.report.svg import (
    EVERYTHING,
    LINE,
    LINES,
    Picture,
    Scale,
    frame,
    legend,
    line,
    polyline,
    shorten,
    svg,
)

WIDTH = 390.0  # of a picture, in points
SHOWN_SECRETS = 24  # in the picture
LISTED_SECRETS = 400  # in the list below it
MOST_CHANCES = 2 * 10**6  # pairs of a value and a possible output: a second of work
MOST_BELIEFS = 2 * 10**7  # pairs of a secret and an output
KEYS = (
    ("allowed", "limits of the promise"),
    ("seen", "after any possible record"),
    ("before", "before"),
)


@dataclass(frozen=True, slots=True)
class Belief:
    """The probability of one secret value: before, its limits by the promise, and its range over all outputs."""

    secret: str
    prior: float
    least: float  # limits of the promise
    most: float
    lowest: float | None  # over all outputs; None if not enumerated
    highest: float | None

    @property
    def top(self) -> float:
        """The largest probability over all outputs, or its limit."""
        return self.most if self.highest is None else self.highest

    @property
    def bottom(self) -> float:
        """The smallest probability over all outputs, or its limit."""
        return self.least if self.lowest is None else self.lowest


@dataclass(frozen=True, slots=True)
class GuessingRates:
    """How often the best guess of the secret is right: without a record, with the published one, with the original."""

    secret: str
    blind: float
    published: float
    original: float


@dataclass(frozen=True, slots=True)
class AttackerView:
    """What somebody who sees one published record can infer about the secret."""

    beliefs: tuple[Belief, ...]  # in display order
    guessing: tuple[GuessingRates, ...]  # of the secret, or of each of several; none where outputs are not listed

    @property
    def worst(self) -> Belief:
        """The belief that can rise furthest."""
        return max(self.beliefs, key=lambda belief: belief.top - belief.prior)

    @property
    def has_limit(self) -> bool:
        """Whether the promise limits beliefs."""
        return any(belief.least > 0.0 or belief.most < 1.0 for belief in self.beliefs)


def attacker_view(joint: Joint, sealed: SealedProtocol) -> AttackerView:
    """Beliefs about every value of the secret, or of each of several that are promised each by itself."""
    seen = _secret_output_joint(joint, sealed)
    if not sealed.promise.by_column:
        return _secret_view(Attribute(joint.secret_name, joint.secrets), joint.p_sx, seen, sealed)
    views = []
    for name, (labels, values) in split_columns(joint).items():
        p_sx, called = values @ joint.p_sx, tuple(f"{name} = {label}" for label in labels)
        mine = None if seen is None else values @ seen
        views.append(_secret_view(Attribute(name, called), p_sx / p_sx.sum(), mine, sealed))
    return AttackerView(
        tuple(belief for view in views for belief in view.beliefs),
        tuple(rate for view in views for rate in view.guessing),
    )


def _secret_view(secret: Attribute, p_sx: FloatArray, seen: FloatArray | None, sealed: SealedProtocol) -> AttackerView:
    lowest, highest, guessing, p_s = None, None, [], p_sx.sum(axis=1)
    if seen is not None:
        p_y = seen.sum(axis=0)
        p_sy, p_y = seen[:, p_y > 0], p_y[p_y > 0]
        posterior = p_sy / p_y
        lowest, highest = posterior.min(axis=1), posterior.max(axis=1)
        right = float(p_sy.max(axis=0).sum() / p_y.sum())
        guessing = [GuessingRates(secret.name, float(p_s.max()), right, float(p_sx.max(axis=0).sum()))]
    found, size = [], sealed.certified_total
    for s in select_labels(secret, p_s, LISTED_SECRETS).tolist():
        prior = float(p_s[s])
        least, most = sealed.promise.belief_bounds(prior, size)
        low = None if lowest is None else float(lowest[s])
        high = None if highest is None else float(highest[s])
        found.append(Belief(secret.labels[s], prior, least, most, low, high))
    return AttackerView(tuple(found), tuple(guessing))


def _secret_output_joint(joint: Joint, sealed: SealedProtocol) -> FloatArray | None:
    """p(s, y), a column per possible output; None if there are too many."""
    law = sealed.mechanism
    if law.sees_secret:
        listed = law.table_protocol
        return None if listed is None else listed.joint_with_secret(joint)
    spelled = law.explicit_protocol(MOST_CHANCES)
    if spelled is None or joint.c * spelled.channel.shape[1] > MOST_BELIEFS:
        return None
    return np.asarray((spelled.channel.T @ joint.p_sx.T).T)


def beliefs_bars(shown: AttackerView, secret: str) -> BarChart:
    """All beliefs on one scale."""
    beliefs = _commonest_and_rarest(shown.beliefs)
    most = scale_end(np.array([max(b.top, b.most if shown.has_limit else 0.0, b.prior) for b in beliefs]))
    rows = []
    for b in beliefs:
        marks = [Mark("allowed", b.least / most, b.most / most)] if shown.has_limit else []
        if b.lowest is not None and b.highest is not None:
            marks.append(Mark("seen", b.lowest / most, b.highest / most))
        marks.append(Mark("before", b.prior / most, b.prior / most))
        known = b.highest is not None or shown.has_limit
        after = f" → {format_percent(b.top, up=True)}" if known else ""
        rows.append(Bar(b.secret, tuple(marks), f"{format_percent(b.prior)}{after}"))
    left = len(shown.beliefs) - len(beliefs)
    more = (
        f" Shown: the {len(beliefs) // 2} commonest and the {len(beliefs) // 2} rarest of {len(shown.beliefs)} values."
        if left
        else ""
    )
    reached = shown.worst.highest is not None
    after = "after the record that raises it most" if reached else "the limit of the promise"
    return BarChart(
        tuple(rows),
        select_keys(rows, KEYS),
        percent_ticks(most),
        f"Probability that a person has each value of {secret}: before, and {after}.{more}",
        secret,
        "before → at most",
    )


def _commonest_and_rarest(beliefs: Sequence[Belief]) -> list[Belief]:
    """Of many values half the commonest and half the rarest, which may be the grave ones."""
    by_share = sorted(range(len(beliefs)), key=lambda i: -beliefs[i].prior)
    if len(by_share) > SHOWN_SECRETS:
        by_share = by_share[: SHOWN_SECRETS // 2] + by_share[-SHOWN_SECRETS // 2 :]
    return [beliefs[i] for i in sorted(by_share)]


def worst_sentence(shown: AttackerView, secret: str, believer: str, *, several: bool = False) -> str:
    """The worst case for the believer of the prior, in one or two sentences; `several` secrets each by itself."""
    b = shown.worst
    if b.highest is None and not shown.has_limit:
        return ""
    allowed = ""
    if shown.has_limit and b.highest is not None:
        allowed = f" The promise allows {format_percent(b.most, up=True)}."
    after, before = format_percent(b.top, up=True), format_percent(b.prior)
    holds = f"they have {b.secret}" if several else f"their {secret} is {b.secret}"
    return (
        f"Somebody who {believer}, sees a person's published record, and knows nothing else of them, is at most "
        f"{after} sure that {holds}. Before, it was {before}.{allowed}"
    )


def guessing_sentence(found: GuessingRates) -> str:
    """How often a guess is right."""
    return (
        f"Their best guess of a person's {found.secret} is right in {format_percent(found.blind)} of cases without a "
        f"record, {format_percent(found.published, up=True)} with the published record, and "
        f"{format_percent(found.original)} with the original record."
    )


def people_sentences(found: Linkage, secret: str, columns: str) -> list[str]:
    """Whether anybody is re-identifiable, in words."""
    if found.unique:
        share = format_percent(found.unique / found.rows, up=True)
        alone = f"{found.unique:,} of {found.rows:,} people ({share}) have values of {columns} that nobody else has."
    else:
        alone = f"Nobody has values of {columns} that are theirs alone: at least {found.smallest:,} people share each."
    sentences = [alone]
    if found.found is not None and found.found_most is not None:
        average, most = (format_percent(share, up=True) for share in (found.found, found.found_most))
        sentences.append(
            f"Somebody who knows a person's {columns}, and that they are in the table, picks out that person's record "
            f"in about {average} of cases, and in about {most} for whoever is found most easily."
        )
    sentences.append(
        f"Who is in the table is not protected, nor is {columns}. What a record tells about {secret} is limited, for "
        "those whom the first table of this page names."
    )
    return sentences


def annex_rows(found: Linkage, secret: str, columns: str, factor: str, believer: str) -> list[tuple[str, str]]:
    """The three criteria of the Article 29 Working Party (WP216): the first two measured, the third bounded."""
    alone, link, _ = [*people_sentences(found, secret, columns), "", ""][:3]
    linked = f"Measured. {link}" if found.found is not None else "Not measured: too many possible records."
    inferred = (
        f"Bounded for somebody who {believer}: no record changes the probability of a value of {secret} by more than "
        f"a factor of {factor}; others are in the first table of this page"
    )
    return [
        ("Singling out: can a person's record be isolated?", f"Measured. {alone}"),
        ("Linkability: can a record be linked to a person?", linked),
        (f"Inference: can {secret} be deduced?", f"{inferred}."),
    ]


def trade_off_picture(leaks: Sequence[LeakProfile]) -> Picture:
    """How well a record tells two values of each secret apart: the errors of the best test, none below the curve."""
    side, left = 190.0, 60.0
    across, up = Scale(0.0, 1.0, left, left + side), Scale(0.0, 1.0, side + 8, 8.0)
    parts = [*frame(across, up, "chance to take the first for the second", "the second for the first")]
    parts.append(line(across(0), up(1), across(1), up(0), colour=EVERYTHING, dashes="1 2"))
    entries = [(line(-8, 0, 8, 0, colour=EVERYTHING, dashes="1 2"), "a record that says nothing")]
    for i, leak in enumerate(leaks):
        colour = LINES[i % len(LINES)]
        parts.append(polyline([(across(float(alpha)), up(float(beta))) for alpha, beta in leak.trade_off], colour))
        pair = f"{leak.secret}: {leak.pair[0]}, {leak.pair[1]}"
        entries.append((line(-8, 0, 8, 0, colour=colour, width=1.5), shorten(pair, 60)))
    height = side + 54
    parts += legend(entries, 12, height, WIDTH - 20, columns=1)
    return Picture(
        "trade-off",
        svg(WIDTH, height + LINE * (len(entries) - 1) + 12, parts),
        "Two values that a record tells apart best, and the errors of somebody who guesses between them: no test has "
        "errors below the curve.",
    )
