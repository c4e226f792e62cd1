"""Audit: does the promise hold, from the files alone, and did the draw follow the protocol?

The promise is checked again in exact arithmetic: the integers of the protocol file against the counts of the table. The
draw is judged by a chi-square test of how often each input became each output, and by whether outputs follow the secret
beyond that. Whatever else the files claim is measured, or said to be unchecked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.audits.claims import Claims, checked_claims
from privacyfunnel.audits.columns import check_columns
from privacyfunnel.audits.domain import secrets_called
from privacyfunnel.audits.following import BySecret, Following
from privacyfunnel.audits.margins import margins
from privacyfunnel.audits.row_order import RowNumbers, order_known
from privacyfunnel.audits.seeds import FIRST_ROWS, FirstRows, drawn_from_seed, seeds_tried, shuffled_from_seed
from privacyfunnel.audits.side_channels import SideChannel, side_channel
from privacyfunnel.errors import ColumnError, GuaranteeError, TableError
from privacyfunnel.laws.law import Law
from privacyfunnel.laws.sealing import SealedProtocol, certify
from privacyfunnel.laws.shares import KnownShares
from privacyfunnel.laws.signing import Signer, signed_protocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.release.composition import looked_up
from privacyfunnel.release.people import People, people
from privacyfunnel.release.write import Published, recognised
from privacyfunnel.shown import facts_html
from privacyfunnel.tables.bins import Bins
from privacyfunnel.tables.dialect import AS_FOUND, Dialect

if TYPE_CHECKING:
    from privacyfunnel.tables.domain_file import DomainFile
    from privacyfunnel.tables.encoding import Encoding
    from privacyfunnel.tables.files import Table
    from privacyfunnel.tables.merging import Merge
    from privacyfunnel.tables.sources import Source

FALSE_ALARM = 1e-6  # the chance that a draw which did follow the protocol is called inconsistent
LEAST_EXPECTED = 20  # cells that expect fewer rows are joined before they are compared
INDUCED_TOLERANCE = 1e-9  # a stated q(y | x) is written in floats, and only ever read by analysts


@dataclass(frozen=True, slots=True)
class Draw:
    """How well a sanitised table agrees with the law it should be drawn from."""

    rows: int
    statistic: float
    degrees: int
    p_value: float  # the chance of a statistic at least as large, had the draw followed the law
    following: Following | None = None  # whether outputs follow the secret; None where rows could not be paired
    unseeded: bool | None = None  # True: no seed that anybody would try draws these rows; None where that was not tried
    beside: tuple[str, ...] = ()  # the columns that were kept on purpose
    paired: bool = True  # row by row; False where the order is not known and only counts of outputs were compared
    untested: tuple[str, ...] = ()  # columns that counts alone could not judge


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """What an audit found: the promise holds."""

    sealed: SealedProtocol
    rows: int
    certified: float  # ε now, on these rows, in exact arithmetic
    draw: Draw | None  # None where no sanitised table was given
    side_channel: SideChannel | None = None  # the worst for several columns; None where there is none or too many
    secret_named: bool = False  # whether the auditor named the secret, or the file alone did
    claims: Claims | None = None  # what the file states beside its promise
    signer: Signer | None = None  # who signed the files; None where nobody did
    people: People | None = None  # ε for those whom the rows stand for; None where there is too much to go through

    @property
    def _facts(self) -> list[tuple[str, str]]:
        promise, draw, secret = self.sealed.promise, self.draw, " & ".join(self.sealed.domain.secret_columns)
        told = [
            ("rows", f"{self.rows:,}"),
            (
                "promise",
                f"{promise.name} ε = {promise.epsilon:g} about {secret} holds",
            ),
            ("certified", f"ε = {self.certified:.6g} now, {self.sealed.epsilon:.6g} stated"),
        ]
        told += [] if self.people is None else [("people", self.people.beside(self.certified))]
        told += [] if draw is None else [("draw", f"consistent, p = {draw.p_value:.3f}")]
        return [*told, ("signed by", "nobody" if self.signer is None else self.signer.fingerprint)]

    def __repr__(self) -> str:
        return "Audit\n" + "\n".join(f"  {name:<11}{said}" for name, said in self._facts)

    def _repr_html_(self) -> str:
        return facts_html("Audit", self._facts)


def audit(
    protocol: str | Path,
    table: str | Path | Source,
    *,
    secret: Sequence[str] = (),
    sanitised: str | Path | None = None,
    bins: Sequence[Bins] = (),
    merges: Sequence[Merge] = (),
    dialect: Dialect = AS_FOUND,
    keep_order: bool = False,
    ledger: str | Path | None = None,
    keep: Sequence[str] = (),
    signed_by: str | Path | None = None,
    domain: DomainFile | None = None,
) -> Audit:
    """Check a protocol file against the table it was made for, and the sanitised table against both.

    Rows are paired where their order is known: `keep_order` says that it is that of the table, the owner's `ledger`
    (by default the one beside the table) how to undo a random one. Else only counts of outputs are compared.

    `keep` names the columns that were kept on purpose; any other that is not published is refused. `signed_by` is the
    public key with which the files must be signed. `domain` is the public one of a private design, and says how its
    secrets are called, which the file does not.

    Raises
    ------
    GuaranteeError
        If the promise or what the file states does not hold on these rows, the draw did not follow the protocol, or
        the sanitised table holds more than it should.
    SignatureError
        If a signature is wrong, or missing where a key was asked for.
    """
    from privacyfunnel.tables.files import open_table
    from privacyfunnel.tables.sources import source_of

    sealed, signer = signed_protocol(protocol, sanitised, signed_by)
    check_secret(sealed, secret)
    sealed.domain.check_secrets(merges)
    original = source_of(table).open(dialect)
    found = Found.of(original, sealed, bins, merges)
    law, joint = sealed.certified_on(found.law, found.joint, () if domain is None else secrets_called(sealed, domain))
    now = certify(law, sealed.promise, joint, "Do not publish what it drew from this table.")
    if not now <= sealed.epsilon:
        raise GuaranteeError(
            f"the protocol file certifies ε = {sealed.epsilon:.6g}; on this table it is {now:.6g}. "
            "It was made for other rows, or altered: make it again."
        )
    _check_induced(sealed, found)
    _check_shares(sealed, found)
    draw = None
    if sanitised is not None:
        numbers = order_known(Path(protocol), table, Path(sanitised), found.encoding.rows, ledger, keep_order)
        draw = _judged(sealed, found, open_table(sanitised), numbers, keep)
    claims = checked_claims(sealed, found.joint, found.law)
    side = side_channel(found.joint, found.law)
    whom = people(law, sealed.promise, joint)
    return Audit(sealed, found.encoding.rows, now, draw, side, bool(secret), claims, signer, whom)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A table whose values were found again among the inputs of a protocol."""

    encoding: Encoding
    joint: Joint
    inputs: IntArray  # the law's input for each input of the joint
    law: Law  # the law on those inputs alone

    @classmethod
    def of(cls, table: Table, sealed: SealedProtocol, bins: Sequence[Bins], merges: Sequence[Merge] = ()) -> Found:
        """Read the table with the protocol's own bins, and look its labels up; `merges` is how secrets were merged."""
        from privacyfunnel.tables.encoding import encode

        domain = sealed.domain
        publish = tuple(at.name for at in domain.attributes)
        named = [b for b in bins if b.column in publish]
        if named:
            raise ColumnError(f"the bins of '{named[0].column}' are in the protocol file; leave out --bin for it.")
        encoding = encode(
            table,
            secret=domain.secret_columns,
            publish=publish,
            bins=[*domain.read_again, *bins],
            merges=[*domain.others, *merges],
        )
        joint = Joint.from_contingency(encoding.contingency)
        values = domain.values
        x = looked_up(joint.values, values, joint.weights.sum(axis=0), publish)
        if not sealed.sees_secret:
            return cls(encoding, joint, x, sealed.law.among(x))
        s = looked_up(joint.secrets, domain.secrets, joint.weights.sum(axis=1), domain.secret_columns)
        inputs = (s[:, None] * len(values) + x[None, :]).reshape(-1)
        return cls(encoding, joint, inputs, sealed.law.among(inputs))

    def codes(self) -> Iterator[IntArray]:
        """The rows in order, n × 3: the number of the row, its secret, and its input of the law."""
        for chunk in self.encoding.chunks():
            z = chunk.secret * self.joint.a + chunk.published if self.law.sees_secret else chunk.published
            numbers = np.arange(chunk.start, chunk.start + len(z))
            yield np.stack([numbers, chunk.secret, self.inputs[z]], axis=1)


def chi_square(counts: IntArray, channel: FloatArray) -> tuple[float, int]:
    r""":math:`\sum_{z,y} (n_{zy} - n_z q(y|z))^2 / (n_z q(y|z))` and its degrees of freedom.

    Cells of a row that expect fewer than LEAST_EXPECTED are joined, as the statistic is chi-square only for large ones.

    >>> chi_square(np.array([[60, 40]]), np.array([[0.5, 0.5]]))
    (4.0, 1)
    """
    statistic, degrees = 0.0, 0
    for observed, q in zip(counts, channel, strict=True):
        expected = observed.sum() * q
        order = np.argsort(-expected, kind="stable")
        large = max(1, int((expected >= LEAST_EXPECTED).sum()))
        if large < len(order) and expected[order[large:]].sum() < LEAST_EXPECTED:
            large -= 1  # what is left joins the smallest of the large cells
        starts = np.arange(large + 1)[: len(order)]
        seen = np.add.reduceat(observed[order], starts)
        wanted = np.add.reduceat(expected[order], starts)
        if len(wanted) > 1 and wanted.min() >= LEAST_EXPECTED:
            statistic += float(((seen - wanted) ** 2 / wanted).sum())
            degrees += len(wanted) - 1
    return statistic, degrees


def _judged(sealed: SealedProtocol, found: Found, table: Table, order: RowNumbers | None, keep: Sequence[str]) -> Draw:
    """Compare the sanitised rows with the law; raise where they did not come from it."""
    way = recognised(sealed, table.columns, table.name)
    beside = check_columns(table.name, table.columns, way.names, sealed.domain.secret_columns, keep)
    if order is None:
        return _judged_by_counts(sealed, found, table, way, beside)
    published = (
        way.drawn(piece) for batch in table.batches(way.names) for piece in batch.iter_slices(way.rows_at_once)
    )
    tally = sealed.law.tally()
    by_secret = BySecret(tally, found.joint.weights.sum(axis=1))
    first = FirstRows()
    rows = 0
    for codes, drawn in _side_by_side(order(found.codes()), published, found.encoding.rows, table.name):
        numbers, secrets, inputs = codes.T
        tally.add(inputs, drawn)
        by_secret.add(secrets, inputs, drawn)
        first.add(numbers, inputs, drawn)
        rows += len(inputs)
    _refuse_impossible(tally.impossible, rows, table.name)
    judged = [chi_square(counts, chances) for counts, chances in tally.rows]
    draw = _tested(Draw(rows, sum(found for found, _ in judged), sum(free for _, free in judged), 1.0), table.name)
    following = by_secret.judged(chi_square)
    if not following.p_value >= FALSE_ALARM:
        raise GuaranteeError(
            f"outputs of {table.name} must not follow {' & '.join(sealed.domain.secret_columns)} beyond what the "
            f"protocol lets them; they do, as a true draw does with a chance below {FALSE_ALARM:g}. Do not publish it: "
            "it was altered, or drawn otherwise."
        )
    guessed = first.drawn_from(sealed.law, seeds_tried()) if sealed.for_publication else None
    return replace(draw, following=following, unseeded=_unseeded(guessed, table.name), beside=beside)


def _unseeded(guessed: bool | None, name: str) -> bool | None:
    """True where no seed was found, None where that is not known; raise where one was."""
    if guessed:
        raise GuaranteeError(
            f"{name} must be drawn from a fresh key, as its protocol file says; it was drawn from a seed that "
            "anybody can guess. Do not publish it: sanitise again without --seed."
        )
    return None if guessed is None else True


def _judged_by_counts(
    sealed: SealedProtocol, found: Found, table: Table, way: Published, beside: tuple[str, ...]
) -> Draw:
    inputs = np.concatenate([codes[:, 2] for codes in found.codes()])
    counts = np.bincount(inputs, minlength=sealed.law.inputs)
    seen = margins(sealed, counts, table, way)
    if seen.rows != found.encoding.rows:
        raise _other_rows(table.name, found.encoding.rows, fewer=seen.rows < found.encoding.rows)
    _refuse_impossible(seen.impossible, seen.rows, table.name)
    draw = Draw(seen.rows, seen.statistic, seen.degrees, 1.0, beside=beside, paired=False, untested=seen.untested)
    draw = _tested(draw, table.name)
    if not sealed.for_publication:
        return draw
    first = way.drawn(next(table.batches(way.names)).head(FIRST_ROWS))
    guessed = drawn_from_seed(sealed.law, inputs, first, seeds_tried()) or shuffled_from_seed(
        sealed.law, inputs, first, seeds_tried()
    )
    return replace(draw, unseeded=_unseeded(guessed, table.name))


def _refuse_impossible(impossible: int, rows: int, name: str) -> None:
    if impossible:
        raise GuaranteeError(
            f"every row of {name} must be an output its protocol can give; {impossible:,} of {rows:,} are "
            "not. The table was altered, or drawn with another protocol."
        )


def _tested(draw: Draw, name: str) -> Draw:
    """The draw with its p-value; raise where that says it was none."""
    from scipy.special import chdtr, chdtrc

    statistic, degrees = draw.statistic, draw.degrees
    p_value = float(chdtrc(degrees, statistic)) if degrees else 1.0
    if degrees and not min(p_value, float(chdtr(degrees, statistic))) >= FALSE_ALARM / 2:
        raise GuaranteeError(
            f"{name} must look drawn from its protocol; chi-square is {statistic:.6g} on {degrees} degrees of "
            f"freedom, which a true draw shows with a chance below {FALSE_ALARM:g}. It was altered, or drawn otherwise."
        )
    return replace(draw, p_value=p_value)


def _side_by_side(
    left: Iterable[IntArray], right: Iterable[NDArray[Any]], rows: int, name: str
) -> Iterator[tuple[IntArray, NDArray[Any]]]:
    """Two streams of rows, cut into pieces of equal length."""
    ours, theirs = iter(left), iter(right)
    a, b = next(ours, None), next(theirs, None)
    while a is not None and b is not None:
        n = min(len(a), len(b))
        yield a[:n], b[:n]
        a = a[n:] if n < len(a) else next(ours, None)
        b = b[n:] if n < len(b) else next(theirs, None)
    if a is not None or b is not None:
        raise _other_rows(name, rows, fewer=b is None)


def _other_rows(name: str, rows: int, *, fewer: bool) -> TableError:
    has = "fewer" if fewer else "more"
    return TableError(f"{name} must have {rows:,} rows like the original table; it has {has}. Name the right one.")


def check_secret(sealed: SealedProtocol, secret: Sequence[str]) -> None:
    stated = sealed.domain.secret_columns
    if secret and tuple(secret) != stated:
        raise ColumnError(
            f"the protocol protects {' & '.join(stated)}; --secret names {' & '.join(secret)}. Name the same columns."
        )


def _check_shares(sealed: SealedProtocol, found: Found) -> None:
    """What analysts calibrate by must be the shares of this table."""
    if sealed.shares is None:
        return
    combos, rows = sealed.domain.combos, found.joint.weights.sum(axis=0)
    mine = combos[found.inputs[: found.joint.a] % len(combos)]
    counted = KnownShares(
        tuple(
            np.bincount(mine[:, j], weights=rows, minlength=len(at.labels)).astype(np.int64)
            for j, at in enumerate(sealed.domain.attributes)
        )
    )
    if not counted.same_as(sealed.shares):
        raise GuaranteeError(
            "the protocol file must state the shares of the published columns in this table; it states others. It was "
            "made for other rows, or altered: make it again."
        )


def _check_induced(sealed: SealedProtocol, found: Found) -> None:
    """What analysts are told about x and y must follow from the integers."""
    table = found.law.listed
    if sealed.induced is None or table is None:
        return
    joint = found.joint
    induced = table.joint_with_values(joint) / joint.p_x[:, None]
    stated = sealed.induced[found.inputs[: joint.a] % len(sealed.domain.combos)]
    if stated.shape != induced.shape or not np.abs(stated - induced).max() <= INDUCED_TOLERANCE:
        raise GuaranteeError(
            "the protocol file must state the channel from values to outputs that its integers induce on this table; "
            "it states another. It was made for other rows, or altered: make it again."
        )
