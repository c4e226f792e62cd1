"""A release: a sanitised table, its sealed mechanism, the request and the findings about them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from privacyfunnel.arrays import IntArray
from privacyfunnel.atomic_files import atomic_file
from privacyfunnel.formatting import (
    facts_html,
    format_epsilon,
    format_factor,
    format_number,
    format_percent,
    table_html,
)
from privacyfunnel.hints import hint, word_for_python
from privacyfunnel.mechanisms.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.row_order_leak import OrderLeak
from privacyfunnel.model.uses.use import UseValue
from privacyfunnel.release.design import DesignResult
from privacyfunnel.release.findings.findings import Findings
from privacyfunnel.release.findings.kept_columns import KeptColumn, kept_column_statements
from privacyfunnel.release.findings.population import PopulationBound
from privacyfunnel.release.ledger.repeats import LedgerReport
from privacyfunnel.release.private_design import design_statements, model_scope_statement, share_statements
from privacyfunnel.release.published_table import PublishedTable, SavedRelease
from privacyfunnel.spec import ReleaseSpec

NOT_FOR_POPULATION = "The promise holds for the people in the file. For others like them it may not"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(PublishedTable):
    """A sanitised table, the protocol it was drawn with, the request, and the findings about them.

    `table` is the frame to publish, or the path of its file, and `sealed` its protocol. `save(folder)` writes both,
    `report()` draws the owner's page; `estimate()`, `impute()` and `posterior()` give what an analyst gets back,
    `audit(frame)` checks all of it, `apply(frame)` draws other rows.
    """

    table: Any
    design: DesignResult
    spec: ReleaseSpec
    findings: Findings  # the owner's own: they may quote counts
    rows: int
    dropped: tuple[str, ...]  # columns that are not published
    unchanged: float  # the share of rows with the value they had
    unchanged_expected: float  # and the share that the mechanism expects
    order_tells: OrderLeak | None = None  # what the order of the table reveals about the secret
    kept_columns: tuple[KeptColumn, ...] = ()  # what each kept column reveals of order and secret
    order: IntArray | None = None  # of a frame: the number in it of each published row; the owner's own
    beside: tuple[str, ...] = ()  # what a frame carried besides its columns, such as an index; not passed on
    protocol_file: Path | None = None
    codebook: Any = None  # what outcome codes stand for: a frame, or the path of its file; None without codes
    pages: tuple[Path, ...] = ()  # the pages that were written
    signature: Path | None = None  # where the owner's signature is, and whose key it is of
    signed_by: str = ""
    remembered: LedgerReport | None = None  # what the ledger knows of these rows; the owner's own
    suspected: tuple[str, ...] = ()  # signs of several rows per person, or of weights; a sentence each
    links: Any = None  # who got which output, by row id, for a release after this one; the owner's own
    read_as: tuple[str, ...] = ()  # what was detected of the table's text format

    @property
    def sealed(self) -> SealedProtocol:
        """The mechanism as integers, with its certificate."""
        return self.design.sealed

    @property
    def joint(self) -> Joint:
        """The counts of the table: the owner's own, in no public file."""
        return self.design.joint

    @property
    def method(self) -> str:
        """The method by which the mechanism was made."""
        return self.design.choice.method

    @property
    def reason(self) -> str:
        """Why this method, where it was not named."""
        return self.design.choice.reason

    @property
    def worth(self) -> UseValue:
        """The value for the use it was made for."""
        return self.design.worth

    @property
    def short(self) -> float | None:
        """The proven gap in the use's own unit, where the search stopped early."""
        return self.design.short

    @property
    def seconds(self) -> float:
        """The time of design and certificate."""
        return self.design.seconds

    @property
    def not_for_people(self) -> str:
        """Why the population is promised nothing, where that was left open; the owner's own."""
        return self.design.not_for_people

    @property
    def rows_alone(self) -> UseValue | None:
        """The value for these rows alone, where the population was promised unasked."""
        return self.design.rows_alone

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns published unchanged."""
        return tuple(self.spec.keep)

    @property
    def kept_judged(self) -> bool:
        """Whether ε is about kept columns and what is published together."""
        return bool(self.spec.judged_columns)

    @property
    def kept_order(self) -> bool:
        """Whether the rows are in the order of the table."""
        return self.spec.keep_order

    @property
    def noise_spent(self) -> float:
        """The ε of private designs for these rows before this one."""
        return 0.0 if self.remembered is None else self.remembered.noise_spent

    @property
    def average(self) -> float | None:
        """The bound on I(S;Y) in nats that was asked for."""
        return self.spec.average

    @property
    def average_only(self) -> bool:
        """Whether nothing but the average is promised."""
        return self.spec.average_only

    @property
    def excel_safe(self) -> bool:
        """Whether cells that a spreadsheet would take for formulas have an apostrophe in front."""
        return self.spec.excel_safe

    @property
    def known_values_leak(self) -> float | None:
        """ε against an attacker who knows X, where the mechanism reads S."""
        return self.findings.known_values_leak

    @property
    def sparse(self) -> str:
        """How far combinations reveal the secret, and what a smaller table would change."""
        return self.findings.sparse

    @property
    def rare(self) -> tuple[str, ...]:
        """Values with few rows, and what merging rare secrets would keep; a sentence each."""
        return self.findings.rare

    @property
    def people(self) -> PopulationBound | None:
        """ε for the population that the rows are a sample of, where it is quickly computed; the owner's own."""
        return self.findings.people

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
        """What nobody should read into the promise, with figures that depend on counts: for the owner."""
        return self._exclusions(to_owner=True)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into the promise, a sentence each, with no figure that is not in a public file."""
        return self._exclusions(to_owner=False)

    def save(self, folder: str | Path, suffix: str = ".csv", *, force: bool = False) -> Path:
        """Write the release into a new folder, whole or not at all: `public` with `sanitised.csv` (or .tsv, .parquet,
        .arrow), and `owner` with what is for the owner alone. With `force` over a release that is there.

        A release of a frame is in no ledger: a second one of the same rows is not noticed.
        """
        return Path(import_module("privacyfunnel").save_release(self, Path(folder), suffix, force=force))

    @staticmethod
    def load(folder: str | Path) -> SavedRelease:
        """A release that was saved: its table and protocol, with `estimate`, `impute`, `audit` and `apply`."""
        return SavedRelease.load(folder)

    def report(self) -> Page:
        """The owner's page: what was promised, what an attacker could learn, what an analyst gets. For them alone."""
        # A release knows no report, which reads releases; the package, which is above all its parts, names one.
        return Page(import_module("privacyfunnel").render_report(self))

    def summary(self) -> str:
        """The release in a few lines."""
        return "Release\n" + "\n".join(f"  {name:<13}{text}" for name, text in self._facts()[:-1])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        rows = "" if isinstance(self.table, str | Path) else first_rows_html(self.table)
        return facts_html("Release", self._facts()) + rows

    def _facts(self) -> list[tuple[str, str]]:
        *promised, kept = self.sealed._facts()
        return [
            ("rows", f"{self.rows:,}"),
            *promised,
            ("method", self.method),
            ("unchanged", f"{format_percent(self.unchanged)} of rows"),
            kept,
            ("not promised", " ".join(map(word_for_python, self.not_promised))),
        ]

    def _exclusions(self, *, to_owner: bool) -> tuple[str, ...]:
        domain, promise = self.sealed.domain, self.sealed.promise
        secret, columns = " & ".join(domain.secret_columns), " & ".join(at.name for at in domain.attributes)
        found = []
        if not self.sealed.for_publication:
            found.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if self.worth.use.keeps_margin:
            found.append(
                f"Every value of {columns} is published as often as it was, on average; so the shares of {columns} in "
                "this table can be computed from the protocol file."
            )
        if self.average is not None and self.average_only:
            worst = "a single record may leak more"
            if to_owner:
                worst = f"the worst record leaks up to ε = {format_epsilon(self.sealed.epsilon)}"
            found.append(
                f"Only the average leakage about {secret} is bounded, by {format_number(self.average)} nats per "
                f"record; {worst}."
            )
        if self.known_values_leak is not None and not promise.guards_known_attributes:
            most = f", up to ε = {format_epsilon(self.known_values_leak)}" if to_owner else ""
            found.append(
                f"This protocol reads {secret}. Whoever already knows a person's {columns} may learn {secret} from "
                f"the published record{most}; {hint('promise', 'srlip')} covers them."
            )
        elif len(domain.attributes) > 1 + bool(self.sealed.follows) and not promise.guards_known_attributes:
            way = hint("promise", "srlip") if self.sealed.mechanism.lists_inputs else hint("known")
            helps = to_owner and (self.sealed.mechanism.lists_inputs or not promise.by_column)
            covers = f"; {way} covers neighbours" if helps else ""
            found += [
                f"A neighbour who knows a person's {at.name} may learn any amount about their {secret}{covers}."
                for at in domain.attributes[bool(self.sealed.follows) :]
                if at.name not in promise.known_columns
            ][:1]
        if domain.secrets_merged:
            found.append(f"Values of {secret} were merged: which of them it is is not protected.")
        found += kept_column_statements(
            self.kept,
            self.kept_columns if to_owner else (),  # which compare them with rows that are not published
            secret,
            order=self.kept_order,
            judged=self.kept_judged,
        )
        if self.beside:
            found.append(
                f"Not passed on, for it may hold the secret or names: {', '.join(self.beside)}. "
                "To publish some of it, make it a column and keep that."
            )
        found += share_statements(self.sealed)
        found += design_statements(self.sealed, to_owner=to_owner, spent=self.noise_spent)
        found += [
            f"Not protected: {columns.replace(' & ', ', ')}, and whether somebody is in the file.",
            *(self.suspected if to_owner else ()),
            "Another release of the same rows, or several rows about one person, can leak more than their ε added; "
            "an audit with the other protocols computes it.",
        ]
        where = "this table" if self.sealed.model is None else "the published model"
        if promise.for_any_belief:
            same = f"for people whose {columns} depends on {secret} as in {where}"
            found.append(f"It holds for any prior belief about {secret}, {same}.")
        elif self.sealed.model is None:
            found.append(f"It is about beliefs that start from {where}; whoever starts from another may learn more.")
        if self.sealed.model is not None:
            found.append(model_scope_statement(self.sealed))
        elif promise.population is None:
            worst = f" (worst case ×{format_factor(self.people.epsilon)})" if to_owner and self.people else ""
            found.append(
                f"{NOT_FOR_POPULATION}{worst}; {hint('population', '95%')} covers them if the file is a sample."
            )
        return tuple(found)


def first_rows_html(frame: Any) -> str:
    """The first rows of a frame of any kind."""
    from privacyfunnel.tables.readers.eager_frames import frame_table

    source = frame_table(frame)
    rows = next(iter(source.batches(source.columns))).head(5)
    return table_html(source.columns, [[str(cell) for cell in row] for row in rows.iter_rows()])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Page:
    """A page of HTML that a notebook shows in a frame."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write it where only its owner can read it."""
        path = Path(path)
        with atomic_file(path, force=True, owner_only=True) as beside:
            beside.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Page of {len(self.html):,} characters; .save(path) writes it"

    def _repr_html_(self) -> str:
        quoted = self.html.replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{quoted}" style="width:100%;height:40em;border:1px solid" sandbox></iframe>'
