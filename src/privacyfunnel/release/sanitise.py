"""The main job: from a table to its sanitised version and the public protocol, whole or not at all.

table ──columns──▶ Joint ──promise + method──▶ Protocol ──seal──▶ SealedProtocol ──sample──▶ sanitised table
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacyfunnel.designs.methods import DEFAULT_METHOD, Effort
from privacyfunnel.errors import ColumnError, OutputError
from privacyfunnel.laws.sampling import KeyStream
from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import SRLIP, Promise
from privacyfunnel.release.order import LABELS, Order, Watch, sealed_protocol, settled, sparse_words
from privacyfunnel.tables.bins import Bins

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.write import Published
    from privacyfunnel.tables.encoding import Encoding


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
    seconds: float = 0.0  # what making and certifying the protocol took
    reason: str = ""  # why this method, where it was chosen for the owner
    sparse: str = ""  # how far combinations give the secret away, and what a smaller table would change
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
    chain_order: Sequence[str] = (),
    budgets: str | Sequence[float] | None = None,
    keep: str | Sequence[str] = (),
    bins: Sequence[Bins] = (),
    as_: str = LABELS,
    sets: str = "column",
    sees_secret: bool = False,
    seed: int | None = None,
    effort: Effort | None = None,
) -> Release:
    """Sanitise a frame in memory (anything narwhals reads); `Release.table` is a frame of the same kind.

    What each argument means is what `Order` says of it.
    """
    import polars as pl

    from privacyfunnel.tables.frames import FrameTable

    order = Order(
        secret=_names(secret),
        publish=_names(publish),
        promise=promise,
        method=method,
        chain_order=tuple(chain_order),
        budgets=budgets if budgets is None or isinstance(budgets, str) else tuple(budgets),
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
    from privacyfunnel.tables.files import checked_output, open_table, table_suffix
    from privacyfunnel.tables.whole import checked_target, folder, whole_file
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
        protocol_beside.write_text(drawing.sealed.to_text(), encoding="utf-8")
        release = drawing.release(target)  # before the files appear: what fails leaves nothing behind
    return replace(release, protocol_file=protocol_file)


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
        seconds: float,
    ) -> None:
        from privacyfunnel.release.write import published

        self.sealed = sealed
        self._encoding, self._joint, self._order, self._watch = encoding, joint, order, watch
        self._way: Published = published(sealed, order.sets)
        self._stream, self._reason, self._seconds = stream, reason, seconds
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
        order, reason = settled(joint, order)
        stream = KeyStream.fresh() if order.seed is None else KeyStream.from_seed(order.seed)
        begun = time.monotonic()
        sealed = sealed_protocol(encoding, joint, order, stream)
        return cls(encoding, joint, sealed, order, stream, watch, reason, time.monotonic() - begun)

    def batches(self, keep: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """The sanitised rows in the order of the table: the published columns, then those to `keep`."""
        import polars as pl

        law, a = self.sealed.law, self._joint.a
        step = self._way.rows_at_once
        for chunk in self._encoding.chunks(keep):
            inputs = chunk.secret * a + chunk.published if law.sees_secret else chunk.published
            for start in range(0, len(inputs), step):
                piece = slice(start, start + step)
                words = self._stream.rows(chunk.start + start, len(inputs[piece]))
                drawn = law.draw(inputs[piece], words)
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
        return Release(
            table=table,
            sealed=self.sealed,
            method=order.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self._unchanged / encoding.rows,
            unchanged_expected=self._way.expected_unchanged(self._joint),
            known_values_leak=SRLIP(0).leakage(self._joint, law.protocol) if law.sees_secret else None,
            seconds=self._seconds,
            reason=self._reason,
            sparse=sparse_words(self._joint, order, self.sealed, self._watch),
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


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
