"""Noise that private designs draw for the counts of a table: recorded before it is drawn, and added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from privacyfunnel.errors import LedgerError, ParameterError
from privacyfunnel.formatting import format_epsilon
from privacyfunnel.hints import hint
from privacyfunnel.model.published.noisy_counts import check_design_epsilon
from privacyfunnel.release.ledger.ledger_file import NOTHING, Entry, Ledger, early_entry

if TYPE_CHECKING:
    from privacyfunnel.spec import ReleaseSpec
    from privacyfunnel.tables.coding.contingency import Contingency
    from privacyfunnel.tables.readers.table_files import TableSource


def record_noise(
    book: Ledger,
    counted: Contingency,
    spec: ReleaseSpec,
    source: TableSource,
    protocol: Path,
    salt: bytes,
    *,
    trial: bool = False,
) -> tuple[Entry, ...]:
    """Before a private design draws its noise: remember it, and refuse rows whose counts were noised before.

    What it gives are the times before that were agreed to. Noise from a seed, or of a trial, is not for publication.
    """
    if not spec.is_private_design or spec.seed is not None or trial:
        return ()
    whole = Fraction(str(spec.promise_value.epsilon))  # of which a published model takes a part
    mine = replace(
        early_entry(counted, spec, source, protocol, salt, for_publication=True),
        when=datetime.now().astimezone().isoformat(timespec="microseconds"),
        protocol_file=str(protocol.resolve()),
        noise=str(whole if spec.design_epsilon is None else check_design_epsilon(spec.design_epsilon)),
    )

    def refuse(before: Sequence[Entry]) -> LedgerError:
        return LedgerError(
            f"{noise_statement(before, mine.noise)} {NOTHING}, and no noise was drawn; {hint('again')} goes on, and "
            "all of it counts."
        )

    return book.record_noise(mine, refuse=None if spec.again else refuse)


@contextmanager
def noise_counts(recorded: Sequence[object]) -> Iterator[None]:
    """Say in a refusal that noise was drawn, where it was: who ran designs until one pleases would choose by it."""
    try:
        yield
    except ParameterError as error:
        if not recorded:
            raise
        raise ParameterError(
            f"{error.sentence} Noise was drawn, and counts: the next run needs {hint('again')}; {hint('try_')} draws "
            "none that counts."
        ) from None


def noise_statement(before: Sequence[Entry], now: str | float) -> str:
    """How often noise was drawn for these rows, and what its ε add up to together with this design's."""
    spent = sum((Fraction(entry.noise) for entry in before), Fraction(now))
    times = "once" if len(before) == 1 else f"{len(before)} times"
    return (
        f"Noise was drawn for the counts of these rows before, {times}, last on {before[-1].when[:10]} for "
        f"'{before[-1].protocol_file}'. Designs add up, also those whose files were never handed out, if they were "
        f"looked at: with this one ε of the design is {format_epsilon(float(spent))}."
    )
