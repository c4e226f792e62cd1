"""Where values stand on a line: numbers by themselves, bins by their edges, and others as the owner orders them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from privacyfunnel.arrays import FloatArray, IntArray
from privacyfunnel.errors import ColumnError, ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.model.joint import Attribute, Joint
from privacyfunnel.names import (
    MISSING,
    OTHER,
    format_interval,
    parse_interval,
    split_names,
    suggest_name,
    validate_columns,
)

Orders = tuple[tuple[str, tuple[str, ...]], ...]  # a column, and its labels from least to largest; none: its own order

THOUSANDS = re.compile(r"\.|,.*,|,\d{3}\Z")  # in labels that have commas: these may not be decimal
BETWEEN = "–"  # stands between the ends of a range


def scale_positions(attribute: Attribute, orders: Orders = ()) -> FloatArray | None:
    """Where each label stands: as a number, or by its rank among bins or in the given order; None if nowhere.

    >>> scale_positions(Attribute("age", ("18–64", "under 18", "65+")))
    array([1., 0., 2.])
    """
    labels = attribute.labels
    given = dict(orders).get(attribute.name)
    if given:
        return np.array([given.index(label) for label in labels], dtype=np.float64)
    numbers = _parse_numbers(labels)
    if numbers is not None:
        return numbers
    bins = [found for found in map(parse_interval, labels) if found is not None]
    if len(bins) < len(labels):
        return None
    rank = np.empty(len(labels))
    rank[np.lexsort(np.array(bins).T[::-1])] = np.arange(len(labels))
    return rank


def display_positions(attribute: Attribute, orders: Orders = ()) -> FloatArray | None:
    """Where each label stands in a picture: as `places` says, and what is missing or merged behind all others.

    >>> display_positions(Attribute("age", ("(missing)", "18–64", "under 18")))
    array([inf,  1.,  0.])
    """
    last = np.array([label in (MISSING, OTHER) for label in attribute.labels])
    if not last.any() or last.all() or attribute.name in dict(orders):
        return scale_positions(attribute, orders)
    others = scale_positions(Attribute(attribute.name, tuple(np.array(attribute.labels, dtype=object)[~last])))
    if others is None:
        return None
    where = np.full(len(last), np.inf)
    where[~last] = others
    return where


def _parse_numbers(labels: Sequence[str]) -> FloatArray | None:
    """The numbers that labels are, also with decimal commas: where none can be one between thousands.

    >>> _parse_numbers(["10,5", "9"]), _parse_numbers(["1,500", "9"])
    (array([10.5,  9. ]), None)
    """
    if any("," in label for label in labels) and not any(THOUSANDS.search(label) for label in labels):
        labels = [label.replace(",", ".") for label in labels]
    try:
        numbers = np.array([float(label) for label in labels])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def all_have_positions(joint: Joint, orders: Orders = ()) -> bool:
    """Whether the values of every column stand on a line."""
    return all(scale_positions(attribute, orders) is not None for attribute in joint.attributes)


def value_positions(joint: Joint, orders: Orders) -> FloatArray:
    """a × m: where each value stands on the line of its column."""
    columns = []
    for j, attribute in enumerate(joint.attributes):
        found = scale_positions(attribute, orders)
        if found is None:
            some = "some" if display_positions(attribute) is None else "missing or merged ones"
            raise ColumnError(
                f"a distance needs values that are numbers; {some} of '{attribute.name}' are none. Give their order "
                f"({hint('ordered', attribute.name + '=LEAST,…,LARGEST')}) or a CSV file of costs, "
                f"distance:costs.csv, or choose {hint('use', 'values')}."
            )
        columns.append(found[joint.combos[:, j]])
    return np.stack(columns, axis=1)


def check_orders(orders: Orders, joint: Joint) -> None:
    """Refuse an order that names other labels than its column has, or another column than is published."""
    names = [attribute.name for attribute in joint.attributes]
    for column, _ in orders:
        if column not in names:
            raise ColumnError(
                f"an order must be of a published column; '{column}' is none.{suggest_name(column, names)}"
            )
    validate_columns([column for column, _ in orders], names, "ordered")
    for attribute in joint.attributes:
        given = dict(orders).get(attribute.name)
        if given == () and scale_positions(attribute) is None:
            raise ColumnError(
                f"numbers and bins have an order of their own; some of '{attribute.name}' are neither. Name them all: "
                f"{hint('ordered', attribute.name + '=LEAST,…,LARGEST')}."
            )
        if given and sorted(given) != sorted(attribute.labels):
            raise ParameterError(
                f"an order must name each of the {len(attribute.labels)} values of '{attribute.name}' once; this names "
                f"{len(given)}, {len(set(given) & set(attribute.labels))} of them among these."
            )


def range_labels(attribute: Attribute, where: FloatArray, held: Sequence[IntArray]) -> list[str | None]:
    """How outputs are called that hold neighbours only: by the ends of their range; None for one that leaves out some.

    >>> age = Attribute("age", ("20", "30", "40", "50"))
    >>> range_labels(age, np.array([20.0, 30.0, 40.0, 50.0]), [np.array([1, 0]), np.array([2]), np.array([0, 3])])
    ['20–30', '40', None]
    """
    rank = np.argsort(np.argsort(where))
    found: list[str | None] = []
    for values in held:
        mine = np.sort(rank[values])
        if mine[-1] - mine[0] != len(mine) - 1:
            found.append(None)
            continue
        first, last = (attribute.labels[values[place(where[values])]] for place in (np.argmin, np.argmax))
        found.append(first if first == last else _format_range(first, last))
    return found


def _format_range(first: str, last: str) -> str:
    """`25–44`; two bins are the bin that holds both."""
    low, high = parse_interval(first), parse_interval(last)
    if low is None or high is None or None not in (_parse_numbers([first]), _parse_numbers([last])):
        return f"{first}{BETWEEN}{last}"
    return format_interval(low[0], high[1])


def parse_order(text: str) -> tuple[str, tuple[str, ...]]:
    """The order meant by `COLUMN=LEAST,…,LARGEST`; by `COLUMN` alone, that of its numbers or bins.

    A label that has a comma stands in double quotes.

    >>> parse_order("size=S,M,L"), parse_order('size=S,"M, or nearly",L')
    (('size', ('S', 'M', 'L')), ('size', ('S', 'M, or nearly', 'L')))
    """
    column, _, labels = text.partition("=")
    return column, tuple(label.strip() for label in split_names(labels))
