"""A table on its way out: counted, sealed, drawn, and put into a random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privacyfunnel.laws.sealing import SealedProtocol
from privacyfunnel.model.promises import SRLIP
from privacyfunnel.release.advice import sparse_words
from privacyfunnel.release.design import Designed, counted, designed
from privacyfunnel.release.order import Order
from privacyfunnel.release.people import AT_A_GLANCE, people
from privacyfunnel.release.rare import few_words, rare_secret_words
from privacyfunnel.release.release import Release
from privacyfunnel.release.sending import Watch

if TYPE_CHECKING:
    import polars as pl

    from privacyfunnel.release.outgoing import Outgoing
    from privacyfunnel.tables.encoding import Encoding


class Work:
    """A table on its way out: counted and sealed, and then drawn batch by batch."""

    def __init__(self, order: Order, found: Designed, outgoing: Outgoing, watch: Watch | None) -> None:
        self._order, self._found, self._watch = order, found, watch
        self.outgoing = outgoing

    @classmethod
    def begun(cls, table: Any, order: Order, watch: Watch | None = None) -> Work:
        """Count the table, make the protocol and seal it; nothing is published yet."""
        from privacyfunnel.tables.names import checked_columns

        checked_columns(order.keep, table.columns, "kept")
        if watch:
            watch("counting", 0)
        encoding = counted(table, order)
        return cls.of(encoding, order, designed(encoding.contingency, order), watch)

    @classmethod
    def of(cls, encoding: Encoding, order: Order, found: Designed, watch: Watch | None = None) -> Work:
        """A table for which the protocol was designed."""
        from privacyfunnel.release.met import Met
        from privacyfunnel.release.outgoing import Outgoing

        met = Met(found.sealed, encoding, True)
        return cls(order, found, Outgoing(met, order.sending, watch), watch)

    @property
    def encoding(self) -> Encoding:
        return self.outgoing.met.encoding

    @property
    def sealed(self) -> SealedProtocol:
        return self._found.sealed

    def codebook(self) -> pl.DataFrame | None:
        """What outcome codes stand for, where the table shows any."""
        from privacyfunnel.release.codebook import codebook

        return codebook(self.sealed, self._found.joint)

    def release(self, table: Any) -> Release:
        """What was done, once all batches were drawn."""
        encoding, order, found = self.encoding, self._order, self._found
        used = {*order.secret, *order.publish, *order.keep}
        law, joint = self.sealed.law, found.joint
        return Release(
            table=table,
            sealed=self.sealed,
            method=found.choice.method,
            rows=encoding.rows,
            kept=order.keep,
            dropped=tuple(name for name in encoding.table.columns if name not in used),
            unchanged=self.outgoing.unchanged,
            unchanged_expected=self.outgoing.way.expected_unchanged(joint),
            worth=found.worth,
            short=found.short,
            average=order.average,
            average_only=order.average_only,
            known_values_leak=SRLIP(0).leakage(joint, law.protocol) if law.sees_secret else None,
            seconds=found.seconds,
            reason=found.choice.reason,
            sparse="" if order.private else sparse_words(found, self._watch),
            rare=()
            if order.private
            else tuple(
                filter(None, (few_words(joint, self.sealed.domain.bins), rare_secret_words(found, order.secret)))
            ),
            joint=joint,
            not_for_people=found.not_for_people,
            rows_alone=found.rows_alone,
            people=people(law, self.sealed.promise, joint, AT_A_GLANCE),
            known=() if found.point is None else (found.point,),
            order_tells=self.outgoing.order_tells(),
            kept_columns=self.outgoing.kept_columns(),
            kept_order=order.keep_order,
        )
