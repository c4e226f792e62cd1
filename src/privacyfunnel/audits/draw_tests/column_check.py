"""Which columns a sanitised table has beside those that its protocol publishes."""

from __future__ import annotations

from collections.abc import Sequence

from privacyfunnel.errors import GuaranteeError
from privacyfunnel.names import validate_columns

NAMED = 5  # columns that a sentence names


def check_columns(
    table: str, header: Sequence[str], published: Sequence[str], secret: Sequence[str], kept: Sequence[str]
) -> tuple[str, ...]:
    """The columns that were kept on purpose; all others must be published ones, and the secret is never kept.

    Raises
    ------
    GuaranteeError
        If there is a column that is neither published nor among those `kept`, or the secret itself.
    """
    validate_columns(kept, tuple(header), "kept")
    beside = [name for name in header if name not in published]
    bare = [name for name in beside if name in secret]
    if bare:
        raise GuaranteeError(
            f"{table} must not hold the secret; it holds {_format_names(bare)} as it is. Do not publish it: "
            "sanitise again."
        )
    strange = [name for name in beside if name not in kept]
    if strange:
        one = len(strange) == 1
        raise GuaranteeError(
            f"{table} must hold the published columns and those kept on purpose; {_format_names(strange)} "
            f"{'is' if one else 'are'} neither, and nothing is promised about {'it' if one else 'them'}. Name with "
            "--keep what was kept on purpose, or remove it."
        )
    return tuple(beside)


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:NAMED]) + more
