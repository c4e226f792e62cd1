"""A release in five lines: what is published, what stays, what is protected, how accurate it is, what to beware of.

Hints are worded by whoever shows the lines; all else is in the owner's report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privacyfunnel.atomic_files import OWNER
from privacyfunnel.estimation.expected_precision import (
    CountingError,
    ExpectedPrecision,
    counting_error,
    expected_precision_by_column,
)
from privacyfunnel.estimation.verdict import judge
from privacyfunnel.formatting import format_epsilon, format_error, format_factor, format_percent, format_points
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.names import format_names
from privacyfunnel.release.findings.rare_values import FEW, format_rare_values
from privacyfunnel.tables.databases.table_target import TableTarget

if TYPE_CHECKING:
    from privacyfunnel.release.apply import Applied
    from privacyfunnel.release.design import DesignResult
    from privacyfunnel.release.release import Release

Line = tuple[str, str]
MUCH_PREDICTED = 0.05  # of the rows, by an order that is not published: less is in the report
MOST_COLUMNS = 3  # whose merged values are counted
MOST_WARNINGS = 6  # more are in the report


def summary_lines(release: Release) -> list[Line]:
    """The lines, with what was released before in front, and a line for each warning."""
    sealed, book = release.sealed, release.remembered
    tried = [("Tried", "nothing was drawn, written or recorded; these lines say what the release would be")]
    return [
        *(tried if release.spec.try_ else []),
        *(("Again", statement) for statement in (() if book is None else book.statements)),
        ("Published", file_text(release)),
        ("Stays here", owner_text(release)),
        ("Protects", protection_text(sealed, release.joint, average_only=release.average_only)),
        ("Accuracy", _accuracy_text(release)),
        *label_lines("Warnings", warnings(release)),
    ]


def label_lines(name: str, texts: Sequence[str]) -> list[Line]:
    """A line for each text, of which the first has the name."""
    return [(name if i == 0 else "", text) for i, text in enumerate(texts or ("none",))]


def file_text(release: Release | Applied) -> str:
    """The file, its rows and their order."""
    order = "in the order of your file, which the promise does not cover" if release.kept_order else "shuffled"
    kept = f"; {format_names(release.kept)} unchanged" if release.kept else ""
    also = "" if release.spec.into_table is None else f" and {TableTarget.parse(release.spec.into_table)}"
    where = f"{release.table}{also}   " if isinstance(release.table, str | Path) else ""
    return f"{where}{release.rows:,} rows, {order}{kept}"


def owner_text(release: Release) -> str:
    """What is for the owner alone."""
    owned = [path for path in (release.protocol_file, release.codebook, *release.pages) if _in_owner_folder(path)]
    if release.protocol_file is None:  # of a frame, or of a release that was only tried
        return "protocol and codebook" if not release.sealed.has_noisy_design else "nothing"
    if not owned:
        return "nothing: protocol and codebook may be published too"
    names = [Path(path).name for path in owned]
    ledger = [] if release.remembered is None else [str(release.remembered.ledger)]
    why = " (they can give secrets away)" if release.protocol_file in owned else ""
    return f"{Path(owned[0]).parent}   {', '.join([*names, *ledger])}{why}"


def _in_owner_folder(path: object) -> bool:
    return isinstance(path, str | Path) and Path(path).parent.name == OWNER


def believer(sealed: SealedProtocol) -> str:
    """Whose beliefs the figures are about."""
    if sealed.model is not None:
        return "believes the published model"
    return f"knows the {'noisy counts of the protocol' if sealed.has_noisy_design else 'shares in the table'}"


def protection_text(sealed: SealedProtocol, joint: Joint, *, average_only: bool = False) -> str:
    """The certified factor, one belief of this table that it moves, and whether it holds against neighbours."""
    promise, secret = sealed.promise, sealed.secret_text
    size, factor = sealed.certified_total, format_factor(sealed.certified_total)
    if average_only:
        return f"{secret}: on average only; a single record may give it away (×{factor})"
    whose = "" if promise.population else f" for whoever {believer(sealed)},"
    if promise.by_column:
        own = "".join(f"; {at}: ×{format_factor(size)}" for at, size in sealed.secret_sizes.items())
        text = f"{secret}:{whose} no belief about one of them changes by more than ×{factor}{own}"
        return f"{text}; of several together nothing is promised; {_neighbours_text(sealed)}"
    named = [len(group) != 1 for group in sealed.model.groups] if sealed.model is not None else []
    at = int(np.argmax(np.where(named, 0.0, joint.p_s) if len(named) == joint.c and not all(named) else joint.p_s))
    share = float(joint.p_s[at])
    bounds = promise.belief_bounds(share, size)
    most = format_percent(bounds[1], up=True)
    grows = "no odds change" if promise.for_any_belief else "no guess grows"
    example = f"({joint.secrets[at]}: {format_percent(share)} → at most {most})"
    text = f"{secret}:{whose} {grows} by more than ×{factor} {example}"
    if bounds == (0.0, 1.0) and promise.meaning:  # nothing follows for a single value alone
        where = "among all records" if sealed.model is None else "in the published model"
        text = promise.meaning.format(secret=secret, factor=factor, where=where).rstrip(".")
    people = promise.population
    also = "" if sealed.has_noisy_design else "also "
    audience = (
        "" if people is None else f", {also}for the population, with {format_percent(people.confidence)} confidence"
    )
    return f"{text}{audience}; {_neighbours_text(sealed)}"


def _neighbours_text(sealed: SealedProtocol) -> str:
    """Whether somebody who knows a column of a person is held to the factor as well."""
    names = [at.name for at in sealed.domain.attributes[bool(sealed.follows) :]]
    who = f"neighbours who know a person's {names[0]}"
    if sealed.promise.guards_known_attributes:
        return f"{who}: covered"
    if sealed.promise.known_columns:
        known = format_names(sealed.promise.known_columns)
        return f"neighbours who know a person's {known}: covered; who know other columns: NOT covered"
    if len(names) == 1 and sealed.follows:
        return f"{who}: covered where it did not change"
    if len(names) == 1 and not sealed.sees_secret:
        return f"{who}: covered, a record tells them nothing new"
    way = hint("promise", "srlip") if sealed.mechanism.lists_inputs else hint("known", names[0])
    few = sealed.mechanism.lists_inputs or not sealed.promise.by_column  # else no option covers them
    return f"{who}: NOT covered{f' ({way} covers them)' if few else ''}"


def _accuracy_text(release: Release) -> str:
    """How near shares come, by estimate and by counting; and how many rows are as they were."""
    sealed, joint = release.sealed, release.joint
    shares = expected_precision_by_column(sealed, joint, release.rows)
    counted = counting_error(sealed, joint, release.rows)
    if counted is not None and release.unchanged == 1:  # real or synthetic records have a bound of it only
        counted = replace(counted, most=0.0)
    real = f"{format_percent(release.unchanged)} of rows show their own values"
    grade = judge(release.design, release.unchanged_expected, release.spec).text
    return f"{grade}: {'; '.join([*accuracy_texts(shares, counted), real])}"


def accuracy_texts(shares: Sequence[ExpectedPrecision], counted: CountingError | None) -> list[str]:
    """What an analyst gets, and what somebody who counts the file."""
    found = []
    if shares:
        found.append(f"shares {format_within([share.average for share in shares])} with estimate")
    else:
        found.append("how near estimate comes is not computed for so many values")
    if counted is not None:
        exact = format_error(counted.most) == "exact"
        off = "exact" if exact else f"off by up to {format_points(counted.most)} points"
        found.append(f"counted in a spreadsheet: {off}")
    return found


def format_within(errors: Sequence[float]) -> str:
    """The smallest and the largest of some errors of shares, in points.

    >>> format_within([0.002]), format_within([0.0007, 0.002]), format_within([0.0])
    ('within ±0.2 points', 'within ±0.07 to ±0.2 points', 'exact')
    """
    least, most = min(errors), max(errors)
    if format_error(most) == "exact":
        return "exact"
    texts = list(dict.fromkeys(f"±{format_points(error)}" for error in (least, most)))
    return f"within {' to '.join(texts)} points"


def warnings(release: Release) -> list[str]:
    """What the owner should know before the file is handed out, a short sentence each."""
    secret = release.sealed.secret_text
    found = []
    if not release.sealed.for_publication:
        found.append("drawn from a seed, which somebody may guess: NOT FOR PUBLICATION")
    if release.kept and not release.kept_judged:
        found.append(f"{format_names(release.kept)} in clear, and not covered by the promise")
    leak = release.order_tells
    if leak is not None and leak.guessed - leak.base > (0 if release.kept_order else MUCH_PREDICTED):
        where = "in the published order" if release.kept_order else "never publish your file in its own order:"
        share, base = format_percent(leak.guessed, up=True), format_percent(leak.base)
        found.append(f"{where} neighbouring rows predict {secret} of {share} of the rows ({base} without them)")
    if not release.sealed.has_noisy_design:
        found.append(f"not protected against somebody who knows all other rows; {hint('prior', 'model')} is")
        rare = format_rare_values(release.joint)
        found += [f"{rare}; {hint('merge_rare', FEW)} merges rare values"] if rare else []
    found += [*_rare_secrets(release.design), *_unnamed_values(release.design)]
    found += [release.findings.poor_model] if release.findings.poor_model else []
    found += [release.findings.knows_better] if release.findings.knows_better else []
    found += [release.sparse] if release.sparse else []
    found += release.suspected
    if release.short is not None or release.worth.stopped == "time":
        found.append(f"a longer {hint('time_limit')} might be more accurate")
    more = len(found) - MOST_WARNINGS
    return found if more <= 0 else [*found[:MOST_WARNINGS], f"and {more} more, in the report"]


def _rare_secrets(design: DesignResult) -> list[str]:
    """That a model promises nothing about single values of the secret which it does not list by themselves."""
    model, fitted = design.sealed.model, design.fitted
    if model is None or fitted is None or design.sealed.promise.by_column:
        return []
    table, listed = fitted.contingency, {group[0] for group in model.groups if len(group) == 1}
    rare = [s for s, label in enumerate(table.secret_labels) if label not in listed]
    share = format_percent(float(table.weights[rare].sum() / table.weights.sum()), up=True)
    what = f"{len(rare):,} of {len(table.secret_labels):,} values of {design.sealed.secret_text} ({share} of rows)"
    return [f"{what} are too rare for the model: nothing is promised about one of them"] if rare else []


def _unnamed_values(design: DesignResult) -> list[str]:
    """That labels which few rows have are not named, where labels were found through noise."""
    if not design.merged:
        return []
    each = [
        f"{one.merged:,} of {one.labels:,} values of {one.column} ({format_percent(one.share, up=True)} of rows)"
        for one in sorted(design.merged, key=lambda one: -one.share)
    ]
    columns = hint("public_labels", ",".join(one.column for one in design.merged))
    more = [f"and in {len(each) - MOST_COLUMNS} more columns"] if len(each) > MOST_COLUMNS else []
    named = ", ".join([*each[:MOST_COLUMNS], *more])
    return [f"rare values were merged: {named}; {columns} names all, if it is known which values there are"]


def drift_text(found: Applied) -> str:
    """What holds on rows that were drawn with a protocol of before."""
    sealed, secret = found.sealed, found.sealed.secret_text
    if found.measured is None:
        why = found.unmeasured or f"these rows do not carry {secret}"
        certified = f"{secret}: ×{format_factor(sealed.certified_total)} {found.certified_for}"
        return f"{certified}; on these rows not measured: {why.rstrip('.')}"
    size = f"×{format_factor(found.measured.epsilon)} (ε = {format_epsilon(found.measured.epsilon)})"
    allowed = f"×{format_factor(found.measured.allowed)} allowed"
    if found.measured.above:
        return f"{secret}: a guess may grow by {size} on these rows, ABOVE the {allowed}"
    return f"{secret}: no guess grows by more than {size} on these rows, within the {allowed}; checked exactly"
