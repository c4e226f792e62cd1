"""Uses by the names they are asked for under. A new use is a line in `READ`, and one in `designs/solvers.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from privacyfunnel.errors import ParameterError
from privacyfunnel.model.uses.linear import read_distance, read_values
from privacyfunnel.model.uses.statistics import read_balanced, read_statistics
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.tables.names import nearest


def _read_information(text: str) -> Information:
    if text:
        raise ParameterError(f"information is asked for as 'information', with nothing behind it; there is '{text}'.")
    return Information()


# What makes the use from what stands behind its name and a colon.
READ: Mapping[str, Callable[[str], Use]] = MappingProxyType(
    {
        "information": _read_information,
        "values": read_values,
        "distance": read_distance,
        "statistics": read_statistics,
        "balanced": read_balanced,
    }
)


def meant(use: Use | str | None) -> Use | None:
    """The use, or the one that a text means, as it is written behind --for; nothing where nothing was said.

    >>> meant("balanced:0.97") == meant(use_called("balanced:97%"))
    True
    """
    return use_called(use) if isinstance(use, str) else use


def use_called(text: str) -> Use:
    """The use meant by a name, or by a name, a colon and what else is to be said.

    >>> use_called("distance:squared").unit
    'expected squared error'
    >>> use_called("informtion")
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: A use is one of information, values, distance, statistics, balanced; there \
is none called 'informtion'. Did you mean 'information'?
    """
    name, _, more = text.strip().partition(":")
    if name not in READ:
        raise ParameterError(
            f"A use is one of {', '.join(READ)}; there is none called '{name}'.{nearest(name, tuple(READ))}"
        )
    return READ[name](more.strip())
