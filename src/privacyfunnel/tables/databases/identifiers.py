"""Names of columns in a query."""

from collections.abc import Sequence

from privacyfunnel.errors import ColumnError


def quote_identifier(name: str) -> str:
    """The name as SQL understands it, whatever characters it has.

    >>> print(quote_identifier('the "age"'))
    "the ""age\"""
    """
    return '"{}"'.format(name.replace('"', '""'))


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse a query two of whose columns have one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(
            f"columns of a query must have different names; '{twice[0]}' is there twice. Write … as another name."
        )
