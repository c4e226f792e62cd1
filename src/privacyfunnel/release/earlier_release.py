"""The release that another one follows: its model and mechanism, and what was published of whom, which the owner keeps.

Rows leave in random order and without ids, so the public folder does not say whose record is whose. The owner's folder
has a list of row ids with the output that each got. People who were left out of a release stay on the list.

A protocol q(y | x, h) is made for every history h; those of different h do not depend on each other. All of them
together are one channel from (h, x) to (h, y).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from privacyfunnel.arrays import FloatArray
from privacyfunnel.atomic_files import OWNER
from privacyfunnel.errors import ColumnError, GuaranteeError, ParameterError, SizeError
from privacyfunnel.formatting import format_epsilon, format_places
from privacyfunnel.hints import hint
from privacyfunnel.mechanisms.after_model import AfterModel, History
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.outcomes import build_outcomes
from privacyfunnel.mechanisms.protocol_file import find_protocol, read_bytes
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify, certify_at_model
from privacyfunnel.model.composable import AfterPromise
from privacyfunnel.model.information import entropy
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.protocols.channel_protocol import Labels, Protocol
from privacyfunnel.model.published.table_model import PublishedModel
from privacyfunnel.model.uses.linear_use import Values
from privacyfunnel.names import join_labels, unique_label, validate_columns
from privacyfunnel.release.apply import unknown_rows_error
from privacyfunnel.release.bound_table import BoundTable
from privacyfunnel.release.design import DesignResult, MethodResult, run_method
from privacyfunnel.release.ledger.ledger_file import protocol_digest
from privacyfunnel.release.model_design import FittedModel
from privacyfunnel.release.published_table import SavedRelease
from privacyfunnel.release.release import Release
from privacyfunnel.release.release_files import LINKS
from privacyfunnel.release.row_sampler import BACK, OUTPUT
from privacyfunnel.spec import ReleaseSpec
from privacyfunnel.spec.fields import OUTCOMES
from privacyfunnel.tables.coding.row_hashes import id_texts, make_row_ids
from privacyfunnel.tables.readers.formats import Table, TableWrapper
from privacyfunnel.tables.readers.table_files import open_table

if TYPE_CHECKING:
    from privacyfunnel.designs.interface import Progress

WORK = 120.0  # nominal seconds of counted work for the protocols of all histories together
NO_SHARES = "of some people's ε hardly anything is left, so that shares cannot be estimated anew"
LITTLE = 0.1  # of ε: where less is left for somebody, shares cannot be estimated anew, and right values are kept
MOST_INPUTS = 20_000  # pairs of a history and a value
ROUNDING = 1e-9  # by which floats may call a leak too large; the seal compares integers
BEFORE, NEW = "before", "new"  # the column that says what was published before, and of whom nothing was
ID = "id"


Solve = Callable[[Joint, Promise, float], SealedProtocol]  # told as well how much of ε was spent at most before


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """A release whose people may be in the next one."""

    sealed: SealedProtocol
    links: pl.DataFrame  # an id, how many releases back that person was last in one, and the number of the output
    row_id: str  # the column of ids
    files: tuple[str, ...]  # SHA-256 of its protocol file and of all before
    name: str = "the earlier release"

    @classmethod
    def load(cls, after: Any) -> EarlierRelease:
        """The release in a folder, or in memory; refused where nothing can follow it."""
        if isinstance(after, SavedRelease):
            after = after.protocol_file
        if isinstance(after, Release):
            sealed, links, name = after.sealed, after.links, "the earlier release"
            text = sealed.to_text().encode()
        else:
            path = find_protocol(Path(after))
            text, name = read_bytes(path), f"'{after}'"
            sealed = SealedProtocol.from_text(text.decode("utf-8-sig"), str(path))
            file = path.parent.parent / OWNER / LINKS
            links = pl.concat(list((table := open_table(file)).batches(table.columns))) if file.is_file() else None
        _check_followable(sealed, name)
        numbers = [links[at].cast(pl.Int64, strict=False) for at in (BACK, OUTPUT) if links is not None and at in links]
        if links is None or len(numbers) < 2 or any(column.null_count() for column in numbers):
            raise ParameterError(
                f"What was published of whom must be known to make a release after {name}; its owner's folder has no "
                f"{LINKS}, or an altered one. Make that release with {hint('row_id', 'COLUMN')}, and name its folder."
            )
        certify_at_model(sealed, "Nothing was made after it.")
        model = sealed.model
        files = (*(model.files if isinstance(model, AfterModel) else ()), protocol_digest(text))
        row_id = links.columns[0]
        kept = pl.DataFrame([id_texts(links[row_id]).alias(ID), *numbers])
        return cls(sealed, kept, row_id, files, name)

    @property
    def values(self) -> Joint:
        """What people may have, by the model of the first release."""
        domain, model = self.sealed.domain, self.model
        follows = isinstance(model, AfterModel)
        size = model.values if isinstance(model, AfterModel) else len(domain.combos)
        columns = domain.attributes[follows:], domain.combos[:size, follows:]
        return model.base.joint(*columns, " & ".join(domain.secret_columns))

    @property
    def model(self) -> PublishedModel:
        """Its published model."""
        return self.sealed.require_model()

    @property
    def publish(self) -> tuple[str, ...]:
        """The columns that it published, without what was published before it."""
        return tuple(at.name for at in self.sealed.domain.attributes[isinstance(self.sealed.model, AfterModel) :])

    def complete_spec(self, spec: ReleaseSpec) -> ReleaseSpec:
        """The request with the columns, ids and promise of the earlier release; refused where it asks for others."""
        columns, promise = self.sealed.domain.secret_columns, self.sealed.promise
        if isinstance(spec.promise, str) and spec.promise not in ("lip", promise.name.lower()):
            raise ParameterError(
                f"The promise of {self.name} is {promise.name}; {spec.promise} was asked for. Leave it out."
            )
        for field, mine, its in (("secret", tuple(spec.secret), columns), ("publish", spec.publish, self.publish)):
            if mine and tuple(mine) != its:
                raise ColumnError(
                    f"{hint(field)} must be that of {self.name}, {', '.join(its)}; it is {', '.join(mine)}. Leave it "
                    "out."
                )
        total = spec.allowed_epsilon
        if total is None:
            total = self.sealed.total_epsilon
        before = {at: size for at, size in self.sealed.secret_sizes.items() if size < self.sealed.total_epsilon}
        own = getattr(spec.secret, "sizes", None) or before
        sizes = dict.fromkeys(columns) | own
        secret: Any = list(columns) if len(columns) == 1 else sizes if promise.by_column else [list(columns)]
        kind = promise.parameters.get("promise", promise.name).lower()
        plain = not promise.parameters or promise.by_column  # a text says all of it
        changes: dict[str, Any] = {"promise": promise.with_epsilon(total), "epsilon": None, "factor": None}
        changes = {"promise": kind, "epsilon": total, "factor": None} if plain else changes
        return replace(spec, **changes, secret=secret, publish=self.publish, row_id=spec.row_id or self.row_id)

    def promise_for(self, total: Promise) -> Promise:
        """What is promised of records, so that all releases together keep that promise with the model."""
        model = self.model
        if not model.epsilon < Fraction(str(total.epsilon)):
            raise self.no_budget(total)
        return total.reduce(model.epsilon, model.secrets)

    def describe_budget(self, total: float) -> str:
        """What was spent before, and what all releases together may spend."""
        model, number = self.model, len(self.files)
        counts, leak = format_epsilon(float(model.epsilon)), format_epsilon(self.sealed.epsilon)
        records = (
            f"its records leak up to {leak}" if number == 1 else f"records of all {number} so far leak up to {leak}"
        )
        left = format_places(max(total - float(model.epsilon), 0.0), 4, down=True)
        return (
            f"ε = {format_epsilon(total)} for {self.name} and this release together. The model took {counts} and "
            f"{records}; records of all releases may leak {left} together"
        )

    def no_budget(self, total: Promise) -> GuaranteeError:
        """Why nothing more can be published of these people."""
        return GuaranteeError(
            f"No budget is left: {self.describe_budget(total.epsilon)}. Allow a larger {hint('epsilon')}, or publish "
            "nothing more of these people."
        )

    def follow(self, table: Table, row_id: str, total: Promise) -> tuple[AfterModel, LinkedTable]:
        """The model of the next release, and its table with what was published of everybody before."""
        validate_columns([row_id], table.columns, "row id")
        ids = pl.concat([id_texts(batch[row_id]) for batch in table.batches([row_id])]).alias(ID).to_frame()
        found = ids.join(self.links, on=ID, how="left", maintain_order="left")
        again = int(found[BACK].is_not_null().sum())
        if not again:
            raise ColumnError(
                f"{table.name} must hold people of {self.name}; none of {len(ids):,} rows has an id of it in "
                f"'{row_id}'. Name the column of ids that it had, or make a release of its own."
            )
        pairs = found.drop_nulls().select(BACK, OUTPUT).unique().sort(BACK, OUTPUT).rows()
        histories: tuple[History, ...] = ((None,) if again < len(ids) else ()) + tuple(pairs)
        model = AfterModel.follow(self.model, self._law, histories, Fraction(str(total.epsilon)), self.files)
        labels = self._labels(histories)
        taken = {*table.columns, *self.sealed.domain.secret_columns, *self.publish, row_id}
        name = unique_label(BEFORE, taken)
        numbers: dict[Any, str] = dict(zip(histories, labels, strict=True))
        shown = self.links.with_columns(
            pl.Series(
                name, [numbers.get(pair) for pair in self.links.select(BACK, OUTPUT).iter_rows()], dtype=pl.String
            )
        )
        return model, LinkedTable(table, row_id, Attribute(name, labels), shown.select(ID, name))

    @property
    def _law(self) -> ChannelMechanism:
        return _require_channel(self.sealed, self.name)

    def _labels(self, histories: Sequence[History]) -> tuple[str, ...]:
        """What each history is called: by the code or the labels of its output."""
        found: list[list[str]] = []
        for history in histories:
            if history is None:
                found.append([NEW])
            elif history[0] == 0 and self.sealed.outcomes:
                found.append([self.sealed.outcomes[0].codes[history[1]]])
            else:
                law, ago = self._law, history[0]
                model: Any = self.model
                for _ in range(ago):
                    law, model = model.law, model.earlier
                found.append([*law.outputs[history[1]], *([f"{ago + 1} releases ago"] if ago else [])])
        return join_labels(found)

    def next_links(self, drawn: pl.DataFrame) -> pl.DataFrame:
        """The list after the next release, whose outputs these are: whoever is not in it stays as they were."""
        row_id = drawn.columns[0]
        absent = self.links.join(drawn.select(pl.col(row_id).alias(ID)), on=ID, how="anti", maintain_order="left")
        older = absent.select(pl.col(ID).alias(row_id), pl.col(BACK) + 1, pl.col(OUTPUT))
        return pl.concat([drawn, older.cast(drawn.schema)])


@dataclass(frozen=True, slots=True, eq=False)
class NextDesign:
    """A channel from history and value to history and record, at the prior that it was made for."""

    joint: Joint
    mechanism: ChannelMechanism
    shares: FloatArray  # of people by history, for weighing what is said of each


def design_next(model: AfterModel, before: Attribute, values: Joint, promise: Promise, solve: Solve) -> NextDesign:
    """The protocol of every history, one below the other; `before` names the histories, `values` what people may have.

    Raises
    ------
    GuaranteeError
        If what was published already leaks more than the promise allows.
    """
    size, count = len(values.combos), len(model.histories)
    if size * count > MOST_INPUTS:
        raise SizeError(
            f"A release after others is made for at most {MOST_INPUTS:,} pairs of an earlier record and a value; here "
            f"are {size * count:,}. Publish coarser values, or begin anew with other people."
        )
    combos = np.column_stack([np.repeat(np.arange(count), size), np.tile(values.combos, (count, 1))])
    joint = model.joint((before, *values.attributes), combos, values.secret_name)
    whole = model.bind_promise(promise)
    assert isinstance(whole, AfterPromise)
    problems = []
    for number in range(count):
        at = slice(number * size, (number + 1) * size)
        given = replace(joint, weights=joint.weights[:, at], attributes=values.attributes, combos=values.combos)
        mine = AfterPromise(promise, whole.totals, tuple(belief[:, at] for belief in whole.beliefs))
        problems.append((given, mine))
    constant = Protocol(np.ones((size, 1)))
    spent = max(mine.leakage(given, constant) for given, mine in problems)  # of a constant: what is known by now
    if spent > promise.epsilon * (1 + ROUNDING):
        raise GuaranteeError(
            f"All releases together must keep {promise.name} ε = {promise.epsilon:g} for records; those before leak "
            f"{spent:.6g}, so nothing is left. Allow a larger ε, or publish nothing more of these people."
        )
    indptr, output, numerator = [np.zeros(1, dtype=np.int64)], [], []
    outputs: list[Labels] = []
    for number, (given, mine) in enumerate(problems):
        law = _require_channel(solve(given, mine, spent), "an earlier release")
        indptr.append(law.indptr[1:] + indptr[-1][-1])
        output.append(law.output + len(outputs))
        numerator.append(law.numerator)
        outputs += [(before.labels[number], *labels) for labels in law.outputs]
    mechanism = ChannelMechanism(
        np.concatenate(indptr), np.concatenate(output), np.concatenate(numerator), tuple(outputs), sees_secret=False
    )
    shares = joint.p_x.reshape(count, size).sum(axis=1)
    return NextDesign(joint, mechanism, shares)


def design_after(
    earlier: EarlierRelease, table: Table, spec: ReleaseSpec, progress: Progress | None
) -> tuple[DesignResult, BoundTable]:
    """The protocol after a release, and the table that it met; nothing of the table is looked at but its ids."""
    begun, whole, values = time.monotonic(), spec.promise_value, earlier.values
    promise = earlier.promise_for(whole)
    model, linked = earlier.follow(table, spec.row_id or earlier.row_id, whole)
    found: list[MethodResult] = []
    options = spec.options(progress)
    limit = options.effort.time_limit
    work = WORK / len(model.histories)
    effort = replace(options.effort, time_limit=limit and limit / len(model.histories), work_limit=work)

    def solve(joint: Joint, mine: Promise, spent: float) -> SealedProtocol:
        request = spec
        if spec.use is None and spent > (1 - LITTLE) * promise.epsilon:
            request = replace(spec, use=Values())
        found.append(
            run_method(request, joint, mine, replace(options, effort=effort, use=request.use_value or options.use))
        )
        return found[-1].sealed

    try:
        made = design_next(model, linked.before, values, promise, solve)
    except GuaranteeError:
        raise earlier.no_budget(whole) from None
    epsilon = certify(made.mechanism, model.bind_promise(promise), made.joint)
    domain = earlier.sealed.domain
    law, joint = made.mechanism, made.joint
    sealed = SealedProtocol(
        mechanism=law,
        promise=promise,
        epsilon=epsilon,
        domain=replace(domain, attributes=joint.attributes, combos=joint.combos),
        information=law.protocol.mutual_information(joint),
        entropy=entropy(joint.p_x),
        outcomes=build_outcomes(law, joint, {*domain.secret_columns, *(at.name for at in joint.attributes)}),
        for_publication=spec.seed is None and earlier.sealed.for_publication,
        model=model,
    )
    if spec.as_ != OUTCOMES:
        sealed = replace(sealed, outcomes=())
    bound = BoundTable.bind(
        linked,
        sealed,
        bins=spec.of_secret[0],
        merges=spec.of_secret[1],
        keep=spec.read_columns,
        ids=make_row_ids(spec.row_id, table.columns),
    )
    if bound.encoding.unknown_rows.rows:
        raise unknown_rows_error(bound.encoding.unknown_rows, bound.encoding.rows)
    first = found[0]
    choice = first.choice
    if spec.use is None and isinstance(first.worth.use, Values):
        choice = replace(choice, reason=f"made for right values, not for statistics: {NO_SHARES}")
    values_of = [each.worth.value for each in found]
    bounds = [each.worth.bound for each in found]
    shares = made.shares
    worth = replace(
        first.worth,
        value=float(shares @ values_of),
        bound=None if None in bounds else float(shares @ np.array(bounds, dtype=np.float64)),
    )
    fitted = FittedModel(bound.encoding.contingency, model, joint, promise)
    seconds = time.monotonic() - begun
    return DesignResult(sealed, joint, choice, first.options, seconds, worth, fitted=fitted), bound


@dataclass(frozen=True, slots=True, eq=False)
class LinkedTable(TableWrapper):
    """A table with a column more: what was published of everybody before."""

    row_id: str
    before: Attribute
    links: pl.DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.table.columns, self.before.name)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        name = self.before.name
        if name not in columns:
            yield from self.table.batches(columns)
            return
        needed = list(dict.fromkeys([self.row_id, *(column for column in columns if column != name)]))
        for batch in self.table.batches(needed):
            ids = id_texts(batch[self.row_id]).alias(ID).to_frame()
            label = ids.join(self.links, on=ID, how="left", maintain_order="left")[name].fill_null(NEW)
            yield batch.with_columns(label).select(columns)


def _require_channel(sealed: SealedProtocol, name: str) -> ChannelMechanism:
    """The list of chances that it is drawn by."""
    if not sealed.mechanism.lists_inputs:
        raise ParameterError(
            f"No release can be made after {name}: its records are real or synthetic, and their outputs are not "
            f"listed. Publish one or two columns, or few values with {hint('method', 'optimal')}, in a release of its "
            "own."
        )
    return cast(ChannelMechanism, sealed.mechanism)  # whoever lists inputs is drawn from such a list


def _check_followable(sealed: SealedProtocol, name: str) -> None:
    """Refuse a release that another cannot follow."""
    promise = sealed.promise
    reasons = {
        f"it was made without a published model; make it with {hint('prior', 'model')}": sealed.model is None,
        f"its promise covers other odds than the model's; make it without {hint('robust')}": promise.odds is not None,
        f"its promise is one that adds up with releases made independently; make the next one with "
        f"{hint('composable')} and without {hint('after')}": promise.composable is not None,
        f"its promise, {promise.name}, is about people of whom some columns are known, and what these were before is "
        "not; promise LIP, PML, ALIP or LDP": promise.guards_known_attributes,
    }
    for why, so in reasons.items():
        if so:
            raise ParameterError(f"No release can be made after {name}: {why}.")
    _require_channel(sealed, name)
