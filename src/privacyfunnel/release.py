"""The main job: from a table to its sanitised version and the public protocol, whole or not at all.

table ──columns──▶ Joint ──promise + method──▶ Protocol ──seal──▶ SealedProtocol ──sample──▶ sanitised table
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.errors import ColumnError, OutputError, ParameterError
from privacyfunnel.explicit import UnaryEncoding
from privacyfunnel.joint import Joint
from privacyfunnel.laws import ChannelLaw
from privacyfunnel.methods import AUTO, BY_COLUMN, DEFAULT_METHOD, Effort, make
from privacyfunnel.promises import SRLIP, Promise
from privacyfunnel.sampling import KeyStream
from privacyfunnel.sealing import SealedProtocol, seal
from privacyfunnel.tables.bins import Bins

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.published import Published
    from privacyfunnel.tables.encoding import Encoding

LABELS, VALUES = "labels", "values"
TELLING = 0.02  # the share of rows whose combination tells the secret from which on the summary says so
Watch = Callable[[str, int], None]  # told what is being done, and with how many rows


@dataclass(frozen=True, slots=True)
class Order:
    """What the owner asks for."""

    secret: tuple[str, ...]
    publish: tuple[str, ...]
    promise: Promise
    method: str = DEFAULT_METHOD
    chain_order: tuple[str, ...] = ()  # the columns of a chain in order; chosen by what they keep if empty
    keep: tuple[str, ...] = ()
    bins: tuple[Bins, ...] = ()
    as_: str = LABELS
    sets: str = "column"
    sees_secret: bool = False
    seed: int | None = None  # for tests only
    effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        if self.as_ not in {LABELS, VALUES}:
            raise ParameterError(f"Outputs are published as {LABELS} or {VALUES}; not as '{self.as_}'.")
        for role, columns in (("secret", self.secret), ("published", self.publish)):
            if not columns:
                raise ColumnError(f"at least one {role} column must be named; none was. Name one.")
        twice = [name for name in self.keep if name in (*self.secret, *self.publish)]
        if twice:
            raise ColumnError(
                f"column '{twice[0]}' cannot be kept as it is and be secret or published too. Name it once."
            )


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
    known_values_leak: float | None = None  # ε against someone who knows X, where the protocol sees S
    protocol_file: Path | None = None
    reason: str = ""  # why this method, where it was chosen for the owner
    sparse: str = ""  # how far the combinations of several columns give the secret away
    pages: tuple[Path, ...] = ()  # the reports that were written
    joint: Joint | None = None  # the owner's own: it holds counts, and is in no public file

    @property
    def information(self) -> float:
        """I(X;Y) in nats."""
        return self.sealed.information

    @property
    def share_kept(self) -> float:
        """I(X;Y) / H(X)."""
        return self.sealed.information / self.sealed.entropy

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What nobody should read into the promise, a sentence each."""
        domain, promise = self.sealed.domain, self.sealed.promise
        secret, columns = " & ".join(domain.secret_columns), " & ".join(at.name for at in domain.attributes)
        said = []
        if not self.sealed.for_publication:
            said.append("This draw came from a seed, which someone may guess: it is NOT FOR PUBLICATION.")
        if self.known_values_leak is not None and not isinstance(promise, SRLIP):
            said.append(
                f"This protocol looks at {secret}. Whoever already knows a person's {columns} may learn {secret} from "
                f"the published record, up to ε = {self.known_values_leak:.3g}; {promise.name} does not cover them, "
                "SRLIP does."
            )
        elif len(domain.attributes) > 1 and not isinstance(promise, SRLIP):
            said.append(
                f"Whoever already knows some of {columns} of a person may learn more about {secret}; "
                f"{promise.name} does not cover them, SRLIP does."
            )
        if self.kept:
            said.append(f"Kept as they are, unprotected: {', '.join(self.kept)}.")
        said += [
            f"{columns} itself is not protected, nor who is in the table: only {secret} is.",
            "A second release of the same rows, and several rows about one person, add up.",
            f"Beliefs are compared with the distribution of {secret} in this table; whoever starts from another "
            "belief may learn more or less.",
        ]
        return tuple(said)


def sanitise(
    frame: Any,
    *,
    secret: str | Sequence[str],
    publish: str | Sequence[str],
    promise: Promise,
    method: str = DEFAULT_METHOD,
    keep: str | Sequence[str] = (),
    bins: Sequence[Bins] = (),
    as_: str = LABELS,
    sets: str = "column",
    sees_secret: bool = False,
    seed: int | None = None,
    effort: Effort | None = None,
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind."""
    import polars as pl

    from privacyfunnel.tables.frames import FrameTable

    order = Order(
        secret=_names(secret),
        publish=_names(publish),
        promise=promise,
        method=method,
        keep=_names(keep),
        bins=tuple(bins),
        as_=as_,
        sets=sets,
        sees_secret=sees_secret,
        seed=seed,
        effort=effort or Effort(),
    )
    source = FrameTable.of(frame)
    drawing = Drawing.prepared(source, order)
    rows = pl.concat(drawing.batches())
    return drawing.release(source.like(rows.get_columns(), order.keep))


def sanitise_file(
    source: str | Path,
    into: str | Path,
    order: Order,
    *,
    suffix: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    watch: Watch | None = None,
) -> Release:
    """Sanitise a file of any size into the folder `into`: `sanitised.csv` (or as `suffix` says) and `protocol.json`.

    Either both files appear, whole, or none.
    """
    from privacyfunnel.protocol_file import to_text
    from privacyfunnel.tables.files import checked_output, open_table, table_suffix
    from privacyfunnel.tables.whole import checked_target, whole_file
    from privacyfunnel.tables.writing import write_batches

    source, into = Path(source), Path(into)
    table = open_table(source, delimiter=delimiter, encoding=encoding)
    target = into / f"sanitised{suffix or table_suffix(source)}"
    protocol_file = into / "protocol.json"
    if target.exists() and target.samefile(source):
        raise OutputError(f"'{target}' is the table itself and must not be overwritten. Name another folder.")
    if into.exists():  # before hours are spent
        for path in (target, protocol_file):
            checked_target(path, force=force)
    drawing = Drawing.prepared(table, order, watch)
    with (
        folder(into),
        whole_file(protocol_file, force=force) as protocol_beside,
        whole_file(target, force=force) as table_beside,
    ):
        write_batches(table_beside, checked_output(target, force=force), drawing.batches(order.keep))
        protocol_beside.write_text(to_text(drawing.sealed), encoding="utf-8")
    return replace(drawing.release(target), protocol_file=protocol_file)


class Drawing:
    """A table on its way out: counted, sealed, and now drawn batch by batch while the unchanged rows are counted."""

    def __init__(
        self,
        encoding: Encoding,
        joint: Joint,
        sealed: SealedProtocol,
        order: Order,
        stream: KeyStream,
        watch: Watch | None,
        reason: str,
    ) -> None:
        from privacyfunnel.published import published

        self.sealed = sealed
        self._encoding, self._joint, self._order, self._watch = encoding, joint, order, watch
        self._way: Published = published(sealed, order.sets)
        self._stream, self._reason = stream, reason
        self._unchanged = 0
        taken = [name for name in order.keep if name in self._way.names]
        if taken:
            raise ColumnError(f"column '{taken[0]}' cannot be kept: a published column has that name. Rename it first.")

    @classmethod
    def prepared(cls, table: Any, order: Order, watch: Watch | None = None) -> Drawing:
        """Count the table, make the protocol and seal it; nothing is drawn yet."""
        from privacyfunnel.tables.encoding import encode
        from privacyfunnel.tables.names import checked_columns

        checked_columns(order.keep, table.columns, "kept")
        if watch:
            watch("counting", 0)
        encoding = encode(table, secret=order.secret, publish=order.publish, bins=order.bins)
        joint = checked_joint(encoding)
        order, reason = _chosen(joint, order)
        stream = KeyStream.fresh() if order.seed is None else KeyStream.from_seed(order.seed)
        return cls(encoding, joint, sealed_protocol(encoding, joint, order, stream), order, stream, watch, reason)

    def batches(self, keep: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """The sanitised rows in the order of the table: the published columns, then those to `keep`."""
        import polars as pl

        law, a = self.sealed.law, self._joint.a
        step = self._way.rows_at_once
        for chunk in self._encoding.chunks(keep):
            inputs = chunk.secret * a + chunk.published if law.sees_secret else chunk.published
            for start in range(0, len(inputs), step):
                piece = slice(start, start + step)
                drawn = law.draw(inputs[piece], self._stream, chunk.start + start)
                self._unchanged += self._way.unchanged(chunk.published[piece], drawn)
                columns = self._way.columns(drawn)
                if chunk.kept is not None:
                    columns += chunk.kept[piece].get_columns()
                yield pl.DataFrame({column.name: column for column in columns})
            if self._watch:
                self._watch("drawn", chunk.start + len(inputs))

    def release(self, table: Any) -> Release:
        """What was done, once all batches were drawn."""
        encoding, order = self._encoding, self._order
        used = {*order.secret, *order.publish, *order.keep}
        law = self.sealed.law
        sees = isinstance(law, ChannelLaw) and law.sees_secret
        return Release(
            table=table,
            sealed=self.sealed,
            method=order.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self._unchanged / encoding.rows,
            unchanged_expected=self._way.expected_unchanged(self._joint),
            known_values_leak=SRLIP(0).leakage(self._joint, law.protocol) if sees else None,
            reason=self._reason,
            sparse=_sparse(self._joint),
            joint=self._joint,
        )


def checked_joint(encoding: Encoding) -> Joint:
    """p(s, x) of a table; refuses a secret or a published part that is the same in every row."""
    joint = Joint.from_contingency(encoding.contingency)
    for role, size, columns in (
        ("secret", joint.c, encoding.contingency.secret.columns),
        ("published", joint.a, encoding.contingency.published.columns),
    ):
        if size < 2:
            nothing = "hide" if role == "secret" else "sanitise"
            raise ColumnError(
                f"what is {role} must have at least two values; {' & '.join(columns)} has one in all {encoding.rows} "
                f"rows. There is nothing to {nothing}: name another column."
            )
    return joint


def _chosen(joint: Joint, order: Order) -> tuple[Order, str]:
    """The order with its method settled, and why where it was not given."""
    from privacyfunnel.attributes.choice import choose_method

    if order.chain_order and order.method not in {AUTO, "chain"}:
        raise ParameterError(f"an order of columns is for the method chain; {order.method} needs none. Leave it out.")
    if order.method != AUTO:
        return order, ""
    if order.chain_order:
        return replace(order, method="chain"), ""
    if joint.m == 1 or order.sees_secret or order.as_ == VALUES:
        return replace(order, method="optimal"), ""
    choice = choose_method(joint, order.promise)
    return replace(order, method=choice.method), choice.reason


def _sparse(joint: Joint) -> str:
    """A sentence where the combinations of several columns tell the secret of many rows."""
    from privacyfunnel.attributes.choice import sparseness

    if joint.m == 1:
        return ""
    found = sparseness(joint)
    return str(found) if found.told >= TELLING else ""


def sealed_protocol(encoding: Encoding, joint: Joint, order: Order, stream: KeyStream) -> SealedProtocol:
    """The protocol that the order asks for, sealed, with the columns and bins of the table in its domain."""
    sealed = _by_column(encoding, joint, order, stream) if order.method in BY_COLUMN else _whole(joint, order)
    contingency = encoding.contingency
    domain = replace(
        sealed.domain,
        secret_columns=contingency.secret.columns,
        bins={domain.column: domain.edges for domain in contingency.published.domains if domain.edges},
    )
    return replace(sealed, domain=domain, for_publication=order.seed is None)


def _by_column(encoding: Encoding, joint: Joint, order: Order, stream: KeyStream) -> SealedProtocol:
    """A product or a chain. A chain is made for the very rows that will be drawn, with the same stream."""
    import numpy as np

    from privacyfunnel.attributes.budgets import product_protocol
    from privacyfunnel.attributes.order import chain_protocol
    from privacyfunnel.attributes.product_law import seal_product

    if order.sees_secret or order.as_ == VALUES:
        raise ParameterError(f"{order.method} never looks at the secret and publishes labels; use another method.")
    if order.method == "product":
        return seal_product(product_protocol(joint, order.promise).protocol, order.promise, joint)
    codes = np.concatenate([chunk.published for chunk in encoding.chunks()])
    return chain_protocol(joint, order.promise, order=order.chain_order or None).seal(codes, stream)[0]


def _whole(joint: Joint, order: Order) -> SealedProtocol:
    made = make(order.method, joint, order.promise, sees_secret=order.sees_secret, effort=order.effort)
    protocol = made.protocol
    if order.as_ == VALUES:
        if isinstance(protocol, UnaryEncoding):
            raise ParameterError(f"{order.method} publishes sets, not values; use --as labels or another method.")
        protocol = protocol.as_values(joint)
    return seal(protocol, order.promise, joint, bound=made.bound)


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """The folder exists inside; if it had to be made and the work fails, it is gone again."""
    new = [p for p in (path, *path.parents) if not p.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"the folder '{path}' could not be made: {reason}. Choose another place.") from None
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for made in new:
                made.rmdir()
        raise


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
