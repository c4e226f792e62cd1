"""What comes out: a sanitised table, its protocol, and what there is to say about both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.arrays import IntArray
from privacyfunnel.designs.curve import Point
from privacyfunnel.formatting import format_epsilon, format_number
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import Promise
from privacyfunnel.model.row_order_leak import OrderLeak
from privacyfunnel.model.uses.use import UseValue
from privacyfunnel.release.findings.population import PopulationBound
from privacyfunnel.release.findings.published_shares import share_statements
from privacyfunnel.release.private_design import design_statements
from privacyfunnel.release.sending import kept_column_statements

if TYPE_CHECKING:
    from privacyfunnel.release.findings.kept_columns import KeptColumn
    from privacyfunnel.release.ledger.repeats import LedgerReport


NOT_FOR_POPULATION = "ε is about these rows, not about the people whom they are a sample of"


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A sanitised table, the protocol it was drawn with, and what there is to say about both."""

    table: Any  # a frame of the kind that was given, or the path of the file that was written
    sealed: SealedProtocol
    method: str
    rows: int
    kept: tuple[str, ...]  # passed through as they are, unprotected
    dropped: tuple[str, ...]
    unchanged: float  # the share of rows that show the value they had
    unchanged_expected: float  # and the share that the law expects
    worth: UseValue  # how good it is for the use it was made for
    average: float | None = None  # nats: what I(S;Y) was asked to be at most
    average_only: bool = False  # whether nothing else was promised
    known_values_leak: float | None = None  # ε against someone who knows X, where the protocol sees S
    protocol_file: Path | None = None
    codebook: Any = None  # what codes of outputs stand for: a frame, or the path of its file; None where there are none
    short: float | None = None  # in the use's own unit: what the search may have missed, where it was cut short
    seconds: float = 0.0  # what making and certifying the protocol took
    reason: str = ""  # why this method, where it was chosen for the owner
    sparse: str = ""  # how far combinations give the secret away, and what a smaller table would change
    rare: tuple[str, ...] = ()  # values that few people have, and what merging rare secrets would keep; a sentence each
    pages: tuple[Path, ...] = ()  # the reports that were written
    joint: Joint | None = None  # the owner's own: it holds counts, and is in no public file
    not_for_people: str = ""  # why the people are promised nothing, where that was left open; the owner's own
    rows_alone: UseValue | None = None  # what these rows alone would keep, where the people were promised unasked
    people: PopulationBound | None = (
        None  # ε for those whom the rows stand for, where that is quickly told; the owner's own
    )
    known: tuple[Point, ...] = ()  # the points of a curve that were solved on the way
    excel_safe: bool = False  # whether cells that a spreadsheet would take for formulas have an apostrophe in front
    beside: tuple[str, ...] = ()  # what a frame carried beside its columns, such as an index: it was not passed on
    order_tells: OrderLeak | None = None  # what the order of the table says about the secret
    kept_columns: tuple[KeptColumn, ...] = ()  # what each kept column gives away of order and secret
    order: IntArray | None = None  # of a frame: which of its rows each published row is; the owner's own
    remembered: LedgerReport | None = None  # what the ledger says: the owner's own
    suspected: tuple[str, ...] = ()  # what looks as if persons had several rows, or rows had weights; a sentence each
    read_as: tuple[str, ...] = ()  # what was found by itself of how the table is written, in words
    kept_order: bool = False  # whether the rows are published in the order of the table

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.sealed.information

    @property
    def share_kept(self) -> float:
        """I(X;Y) / H(X)."""
        return self.sealed.information / self.sealed.entropy

    @property
    def not_promised_to_owner(self) -> tuple[str, ...]:
        """The same with figures that depend on counts, for the people among others: these are the owner's."""
        return self._exclusions(to_owner=True)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into the promise, a sentence each, with no figure that is not in a public file."""
        return self._exclusions(to_owner=False)

    def _exclusions(self, *, to_owner: bool) -> tuple[str, ...]:
        domain, promise = self.sealed.domain, self.sealed.promise
        secret, columns = " & ".join(domain.secret_columns), " & ".join(at.name for at in domain.attributes)
        said = []
        if not self.sealed.for_publication:
            said.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if self.worth.use.keeps_margin:
            said.append(
                f"Every value of {columns} is published as often as it was, on average; so the shares of {columns} in "
                "this table can be computed from the protocol file."
            )
        if self.average is not None and self.average_only:
            worst = f"up to ε = {format_epsilon(self.sealed.epsilon)}" if to_owner else "without a promised limit"
            said.append(
                f"Only the average leakage is bounded: {format_number(self.average)} nats about {secret} per record. A "
                f"single record may leak more, {worst}."
            )
        if self.known_values_leak is not None and not promise.guards_known_attributes:
            most = f", up to ε = {format_epsilon(self.known_values_leak)}" if to_owner else ""
            said.append(
                f"This protocol looks at {secret}. Whoever already knows a person's {columns} may learn {secret} from "
                f"the published record{most}; {promise.name} does not cover them, SRLIP does."
            )
        elif len(domain.attributes) > 1 and not promise.guards_known_attributes:
            said.append(
                f"Whoever already knows some of {columns} of a person may learn more about {secret}; "
                f"{promise.name} does not cover them, SRLIP does."
            )
        if domain.secrets_merged:
            said.append(f"Values of {secret} were merged: nothing is promised that tells those apart that are one now.")
        said += kept_column_statements(self.kept, self.kept_columns, secret, order=self.kept_order)
        if self.beside:
            said.append(
                f"Not passed on, for it may hold the secret or names: {', '.join(self.beside)}. "
                "What is to be published of it must be made a column and named among those to keep."
            )
        said += share_statements(self.sealed)
        said += design_statements(promise, secret, codebook=bool(self.sealed.outcomes), to_owner=to_owner)
        said += [
            f"{columns} itself is not protected, nor who is in the table: only {secret} is.",
            *(self.suspected if to_owner else ()),
            "A second release of the same rows, or several rows about one person, can give away more than their ε "
            "added; audit --with computes it for releases.",
            _belief_statement(promise, secret, columns),
        ]
        if promise.population is None:
            known = (
                f": for them it is, {self.people.statement} ({self.people.kind})" if to_owner and self.people else ""
            )
            said.append(f"{NOT_FOR_POPULATION}{known or '; --population 95% asks for that as well'}.")
        return tuple(said)


def _belief_statement(promise: Promise, secret: str, columns: str) -> str:
    """Whose beliefs the promise is about."""
    if promise.for_any_belief:
        return (
            f"It holds whatever somebody believes about {secret} beforehand, but for people whose {columns} goes with "
            f"{secret} as it does in this table."
        )
    return (
        f"Beliefs are compared with the distribution of {secret} in this table; whoever starts from another belief may "
        "learn more or less."
    )
