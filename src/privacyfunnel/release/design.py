"""Design: from the counts of a table to a sealed protocol.

Counts are all that a design needs, so its protocol may draw today's rows and next year's, here or elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from privacyfunnel.arrays import one_blas_thread
from privacyfunnel.designs.methods import (
    REAL_OR_SYNTHETIC,
    Choice,
    Options,
    apply_default_use,
    make_design,
    resolve_method,
)
from privacyfunnel.designs.wide.real_or_synthetic_design import WideDesign
from privacyfunnel.errors import ColumnError, GuaranteeError, OutputError, ParameterError, SizeError
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.input_domain import ColumnShares, build_substitutes
from privacyfunnel.mechanisms.kept_leakage import kept_columns_error, kept_leakage, refuse_kept_alone
from privacyfunnel.mechanisms.outcomes import build_outcomes
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.kept_promise import KeptCounts, KeptPromise
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.published.noise import BeforeNoise, skip
from privacyfunnel.model.uses.ordinal_scale import Orders
from privacyfunnel.model.uses.use import Information, Use, UseValue
from privacyfunnel.names import validate_roles
from privacyfunnel.release.ledger.ledger_file import Entry
from privacyfunnel.release.model_design import FittedModel, fit_model, fit_population
from privacyfunnel.release.population_scope import extend_effort, obstacle, rows_only_worth
from privacyfunnel.release.private_design import design_statements, model_scope_statement, share_statements
from privacyfunnel.release.wide_design import FittedWideModel, check_wide, fit_wide, is_wide, seal_wide
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.checks import find_source
from privacyfunnel.spec.fields import OUTCOMES
from privacyfunnel.spec.keywords import combine, require_spec
from privacyfunnel.tables.coding.contingency import Contingency, MergedLabels
from privacyfunnel.tables.readers.table_files import TableSource

if TYPE_CHECKING:
    from privacyfunnel.designs.interface import Progress
    from privacyfunnel.tables.coding.encoding import Encoding
    from privacyfunnel.tables.readers.formats import Table

BESIDE_KEPT = ("optimal", "randomised-response", "conditional-reporting")  # see kept columns
ROUNDING = 1e-9  # relative: gaps that differ by less are the same


@dataclass(frozen=True, slots=True, eq=False)
class DesignResult:
    """A sealed protocol, and how it came about."""

    sealed: SealedProtocol
    joint: Joint  # the owner's own: it holds counts
    choice: Choice  # the method, and why where it was not given
    options: Options  # what that method was told
    seconds: float  # what making and certifying took
    worth: UseValue  # how good it is for the use it was made for
    not_for_people: str = ""  # why the people are promised nothing, where that was left open; it may tell of secrets
    rows_alone: UseValue | None = (
        None  # what these rows alone would keep, where the people were promised without asking
    )
    fitted: FittedModel | FittedWideModel | None = (
        None  # the model that it was made from, and the table by its labels; the owner's own
    )
    merged: tuple[MergedLabels, ...] = ()  # columns of which a model names some labels only; the owner's own
    wide: WideDesign | None = None  # what records that are real or synthetic keep, where they are
    protocol_file: Path | None = None  # where it was written, and what its codes stand for
    codebook: Path | None = None
    noise: tuple[Entry, ...] = ()  # the times that noise was drawn for the counts of these rows before

    @property
    def rows(self) -> int:
        """How many rows it was designed on."""
        if self.sealed.model is not None:
            return self.sealed.model.rows
        people = self.sealed.promise.population
        return self.joint.total if people is None else people.rows

    @property
    def short(self) -> float | None:
        """How far the protocol may be from the best one, if that is more than was asked for."""
        worth = self.worth
        if worth.bound is None or self.options.as_values:
            return None
        missing = abs(worth.bound - worth.value)
        tolerance = worth.use.tolerance(self.options.effort.gap, worth.value)
        return missing if missing > tolerance + ROUNDING * (1 + abs(worth.bound)) else None

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into the promise, a sentence each."""
        promise, secret = self.sealed.promise, self.sealed.secret_text
        about = (
            f"The promise is about the table that was counted. In later rows {secret} may "
            "depend otherwise on what is published: apply and audit measure the leakage where the rows carry it."
        )
        if promise.population is not None:
            people = promise.population
            about = (
                "The promise is about the people whom the table is an independent sample of, with "
                f"{100 * people.confidence:g} % confidence: for later rows, if they are of the same people. Secrets of "
                f"fewer than {people.rule.rare} rows, or of none, are promised as one group; audit states each."
            )
        spent = float(sum(Fraction(entry.noise) for entry in self.noise))
        if self.sealed.model is not None:
            about = model_scope_statement(self.sealed)
        design = design_statements(self.sealed, to_owner=True, spent=spent)
        pair = "Of what a record says about several secrets together, such as whether they agree, nothing is promised."
        several = [pair] if promise.by_column else []
        return (about, *several, *share_statements(self.sealed), *design)


def design(
    frame: Any,
    spec: ReleaseSpec | None = None,
    *,
    secret: str | Sequence[str | Sequence[str]] | Mapping[str, float] = (),
    publish: str | Sequence[str] = (),
    epsilon: float | None = None,
    promise: Promise | str | None = None,
    use: Use | str | None = None,
    bins: Sequence[Any] | Mapping[str, Any] = (),
    merge_rare: int | Mapping[str, int] | None = None,
    prior: str | None = None,
) -> SealedProtocol:
    """The sealed protocol for a frame (anything narwhals reads), of which only counts are used; nothing is drawn.

    The spec and its shorthand mean what they mean for `sanitise`, where each is explained. Where the frame has a row
    per combination, the spec's `counts` is the column with the number of rows of each.
    """
    from privacyfunnel.tables.readers.eager_frames import count_in_engine, frame_by_persons, frame_table

    spec = combine(
        spec,
        secret=secret,
        publish=publish,
        epsilon=epsilon,
        promise=promise,
        use=use,
        bins=bins,
        merge_rare=merge_rare,
        prior=prior,
    ).require_columns()
    table = frame_by_persons(frame_table(frame), spec.person, spec.person_row, (*spec.secret, *spec.publish))
    if spec.counts is not None:
        return design_from_counts(_count_table_contingency(table, spec), spec).sealed
    check_hazards(table, spec)
    contingency = None
    if spec.domain_file is None:
        contingency = count_in_engine(table, spec.secret, spec.publish, spec.bin_rules, spec.counted_merges)
    contingency = contingency or count_table(table, spec).contingency
    return design_from_counts(contingency, spec).sealed


def design_file(
    source: str | Path | TableSource | None,
    spec: ReleaseSpec,
    *,
    watch: Callable[[str, int], None] | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> DesignResult:
    """Design the protocol for a file, a `Query` or the table of the spec, and write it to `spec.into`.

    A codebook is written beside it where the table will show codes. No row is drawn. A private design is recorded in
    the owner's ledger before its first noise is drawn; a second one for the same rows is refused unless the spec says
    `again`. With `spec.counts` the file has a row per combination, and that column is the number of rows of each.
    """
    from contextlib import ExitStack

    from privacyfunnel.atomic_files import atomic_file, check_target, ensure_folder
    from privacyfunnel.release.ledger.ledger_file import Ledger, ledger_path
    from privacyfunnel.release.ledger.repeats import noise_counts, record_noise
    from privacyfunnel.release.release_files import codebook, codebook_name
    from privacyfunnel.tables.writers.table_writer import write_batches

    spec = require_spec(spec, "design_file(source").require_columns()
    into, force = spec.require_into(), spec.force
    book = into.with_name(codebook_name(".csv"))
    if into.suffix != ".json":
        raise OutputError(f"a protocol file must be called something.json; '{into.name}' is not. Rename it.")
    for path in (into, book) if into.parent.exists() else ():
        check_target(path, force=force)
    origin = find_source(source or spec.table, spec.query)
    table = origin.open(spec.dialect)
    check_hazards(table, spec)
    if watch:
        watch("counting", 0)
    contingency = count_table(table, spec).contingency if spec.counts is None else _count_table_contingency(table, spec)
    noise: list[tuple[Entry, ...]] = []  # once noise was drawn

    def before_noise() -> None:
        if spec.is_private_design and not noise:
            ledger = Ledger(ledger_path(origin) if spec.ledger is None else spec.ledger)
            with ledger.open_session() as salt:
                noise.append(record_noise(ledger, contingency, spec, origin, into, salt))

    with noise_counts(noise):
        found = design_from_counts(contingency, spec, progress, before_noise=before_noise)
        found = replace(found, noise=noise[0] if noise else ())
    codes, owners = codebook(found.sealed, found.joint), not found.sealed.has_noisy_design
    with ensure_folder(into.parent), ExitStack() as stack:  # the protocol appears last
        part = stack.enter_context(atomic_file(into, force=force, owner_only=owners))
        part.write_text(found.sealed.to_text(), encoding="utf-8")
        if codes is not None:
            part = stack.enter_context(atomic_file(book, force=force, owner_only=owners))
            write_batches(part, book.suffix, [codes])
    return replace(found, protocol_file=into, codebook=None if codes is None else book)


def _count_table_contingency(table: Table, spec: ReleaseSpec) -> Contingency:
    from privacyfunnel.tables.coding.encoding import contingency_from_counts

    if spec.domain_file is not None or spec.counts is None:
        raise ParameterError("A private design adds its noise to counts of rows; give it the table itself.")
    return contingency_from_counts(
        table, spec.counts, secret=spec.secret, publish=spec.publish, bins=spec.bin_rules, merges=spec.counted_merges
    )


def count_table(table: Table, spec: ReleaseSpec) -> Encoding:
    """The table read once and counted, in the domain that was given or in its own."""
    from privacyfunnel.tables.coding.encoding import encode
    from privacyfunnel.tables.coding.row_hashes import make_row_ids

    ids = make_row_ids(spec.row_id, table.columns)
    secret, publish, keep = spec.secret, spec.publish, spec.read_columns
    wide = spec.publishes_model and is_wide(spec)
    if spec.impossible_combinations and not wide:
        raise ParameterError(
            "The domain file names impossible combinations, which real or synthetic records alone avoid; something "
            f"else was asked for. Take them out of it, or use {hint('method', 'auto')}."
        )
    if spec.domain_file is not None:
        found = spec.domain_file.encode(table, secret=secret, publish=publish, keep=keep, ids=ids, unlisted=wide)
    else:
        bins, merges = spec.bin_rules, spec.counted_merges
        found = encode(table, secret=secret, publish=publish, bins=bins, merges=merges, keep=keep, ids=ids)
    if wide:
        check_wide(found.contingency, spec)
    return found


@one_blas_thread()
def design_from_counts(
    contingency: Contingency,
    spec: ReleaseSpec,
    progress: Progress | None = None,
    kept: KeptCounts | None = None,
    before_noise: BeforeNoise = skip,
) -> DesignResult:
    """The protocol that the spec asks for, sealed, with the columns and bins of the table in its domain.

    Where columns are `kept` beside what is published, the promise is about both together. `before_noise` is called
    before each draw of noise for the counts, and may refuse it.
    """
    request = spec.options(progress)
    begun, counted = time.monotonic(), contingency
    why_not, alone = "", None
    fitted: FittedModel | FittedWideModel | None = None
    wide: WideDesign | None = None
    if spec.publishes_model and is_wide(spec):
        fitted = fit_wide(contingency, spec, before_noise)
        contingency, joint = fitted.contingency, fitted.joint
        found, wide = _run_wide(fitted, request)
    elif spec.publishes_model:  # from here on nothing of the table is looked at but the model
        with _neighbours_advised(contingency, spec):
            fitted = fit_model(contingency, spec, before_noise)
            contingency, joint = fitted.contingency, fitted.joint
            request = replace(request, orders=_named_orders(request.orders, joint))
            found = run_method(spec, joint, fitted.promise, request)
    elif spec.is_private_design:  # from here on nothing of the table is looked at but noisy counts
        joint, promise = fit_population(contingency, spec, before_noise)
        found = run_method(spec, joint, promise, request)
    elif not spec.population_if_possible:
        joint = check_joint(contingency)
        found = run_method(spec, joint, spec.promise_for(joint), request, kept)
    else:
        joint = check_joint(contingency)
        found, why_not = _design_for_population(spec, joint, request, kept)
        if not why_not:
            alone = rows_only_worth(found.choice.method, joint, spec.promise_value, found.options)
    choice, options, sealed = found.choice, found.options, found.sealed
    shown = contingency.published.codings
    domain = replace(
        sealed.domain,
        secret_columns=contingency.secret.columns,
        bins={coding.column: coding.edges for coding in shown if coding.edges},
        groupings={at.column: at.how.to_json() for at in shown if at.how is not None},
        rest={at.column: at.labels[at.rest] for at in shown if at.rest is not None},
        missing={at.column: at.labels[at.missing] for at in shown if at.missing is not None},
        orders=tuple((column, labels) for column, labels in options.orders if labels),
        secrets_merged=any(coding.merges_values for coding in contingency.secret.codings),
    )
    taken = {*domain.secret_columns, *spec.publish, *spec.keep}
    coded = spec.as_ == OUTCOMES and sealed.mechanism.lists_inputs
    outcomes = build_outcomes(sealed.mechanism, joint, taken) if coded else ()
    sealed = replace(
        sealed,
        domain=domain,
        outcomes=outcomes,
        for_publication=spec.seed is None,
        substitutes=build_substitutes(joint.p_x) if sealed.mechanism.lists_inputs and not sealed.sees_secret else None,
        shares=ColumnShares.from_joint(joint) if spec.with_shares else None,
        model=None if fitted is None else fitted.model,
    )
    seconds = time.monotonic() - begun
    merged = () if fitted is None else MergedLabels.compare(counted, contingency)
    return DesignResult(sealed, joint, choice, options, seconds, found.worth, why_not, alone, fitted, merged, wide)


@contextmanager
def _neighbours_advised(table: Contingency, spec: ReleaseSpec) -> Iterator[None]:
    """Say what can be promised where many columns are too many for a promise about all that somebody may know."""
    try:
        yield
    except SizeError as error:
        if not spec.promise_value.guards_known_attributes or len(spec.publish) < 2:
            raise
        known = min(table.published.codings, key=lambda coding: len(coding.labels)).column
        raise SizeError(
            f"{spec.promise_value.name} covers people who know any of the columns, of which there are too many: "
            f"{error.sentence.split('. ')[0].rstrip('.')}. Promise LIP, and cover those who know columns that you "
            f"name ({hint('promise', 'lip')} {hint('known', known)}), or publish fewer columns."
        ) from None


def _named_orders(orders: Orders, joint: Joint) -> Orders:
    """The orders without labels that a model does not name."""
    named = {at.name: at.labels for at in joint.attributes}
    return tuple(
        (column, tuple(label for label in labels if label in named.get(column, labels))) for column, labels in orders
    )


class MethodResult(NamedTuple):
    """What a method made of an spec."""

    choice: Choice
    options: Options
    worth: UseValue
    sealed: SealedProtocol


def _run_wide(fitted: FittedWideModel, options: Options) -> tuple[MethodResult, WideDesign]:
    """Real or synthetic records, under a model of many columns."""
    sealed, wide = seal_wide(fitted)
    reason = f"{len(sealed.domain.attributes)} columns together: a record is published as it is, or a synthetic one"
    options = replace(options, as_values=True, use=Information())
    worth = UseValue(options.use, sealed.information, None)
    return MethodResult(Choice(REAL_OR_SYNTHETIC, reason), options, worth, sealed), wide


def run_method(
    spec: ReleaseSpec, joint: Joint, promise: Promise, options: Options, kept: KeptCounts | None = None
) -> MethodResult:
    """The protocol of the method that was asked for, or that suits, keeping this promise."""
    choice = resolve_method(spec.method, options)
    if spec.use_value is None:
        choice, options = apply_default_use(choice, joint, promise, options)
    if kept is not None:
        return _run_beside_kept(choice, joint, promise, options, kept)
    found = make_design(choice, joint, promise, options)
    return MethodResult(choice, options, found.worth, found.seal())


def _run_beside_kept(
    choice: Choice, joint: Joint, promise: Promise, options: Options, kept: KeptCounts
) -> MethodResult:
    """The same where columns are kept: made for both together by the methods that can be, and judged for both.

    The protocol file states the promise about what it publishes, which follows; its bound would be one beside these
    columns, and is left out.
    """
    refuse_kept_alone(promise, joint, kept)
    together = choice.method in BESIDE_KEPT
    found = make_design(choice, joint, KeptPromise(promise, kept) if together else promise, options)
    sealed = replace(found.seal(), promise=promise, bound=None)
    leak = kept_leakage(sealed.mechanism, promise, joint, kept)
    if not leak.keeps:
        raise kept_columns_error(promise, joint.secret_name, kept.columns, leak.epsilon)
    return MethodResult(choice, options, found.worth, replace(sealed, epsilon=max(sealed.epsilon, leak.epsilon)))


def _design_for_population(
    spec: ReleaseSpec, joint: Joint, options: Options, kept: KeptCounts | None
) -> tuple[MethodResult, str]:
    """The protocol for the people, or for these rows alone and why. A faulty spec raises."""
    try:
        why_not = obstacle(spec, joint)
        if not why_not:
            return run_method(spec, joint, spec.promise_for(joint), extend_effort(options)), ""
    except (ParameterError, SizeError, GuaranteeError) as error:
        why_not = error.sentence
    return run_method(spec, joint, spec.promise_value, options, kept), why_not


def check_joint(contingency: Contingency) -> Joint:
    """p(s, x) of a table; refuses a secret or a published part that is the same in every row."""
    joint = Joint.from_contingency(contingency)
    for role, size, columns in (
        ("secret", joint.c, contingency.secret.columns),
        ("published", joint.a, contingency.published.columns),
    ):
        if size < 2:
            nothing = "hide" if role == "secret" else "sanitise"
            raise ColumnError(
                f"what is {role} must have at least two values; {' & '.join(columns)} has one in all {joint.total} "
                f"rows. There is nothing to {nothing}: name another column."
            )
    return joint


def check_hazards(table: Any, spec: ReleaseSpec) -> tuple[str, ...]:
    """Refuse the first column that needs the owner's word and did not get it; sentences about everything else."""
    from privacyfunnel.tables.readers.column_hazards import PERSONS, find_hazards

    validate_roles(spec.secret, spec.publish, table.columns)
    coarser = {rule.column for rule in spec.bin_rules} | {rule.column for rule in spec.merges}
    publish = [] if None in coarser else [column for column in spec.publish if column not in coarser]
    found = find_hazards(table, secret=spec.secret, publish=publish, used=(*spec.publish, *spec.keep))
    refused = [hazard for hazard in found if hazard.blocks and hazard.column not in spec.allow]
    if refused:
        more = f" {len(refused) - 1} more columns need such a decision." if len(refused) > 1 else ""
        raise ColumnError(f"{refused[0].sentence} {hint('allow', refused[0].column)} publishes it as it is.{more}")
    return tuple(
        hazard.sentence for hazard in found if not hazard.blocks and not (spec.person and hazard.kind == PERSONS)
    )
