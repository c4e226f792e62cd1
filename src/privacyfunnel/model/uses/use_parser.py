"""Uses by the names they are asked for under. A new use is a line in `READ`, and one in `optimal/optimum.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from privacyfunnel import plugins
from privacyfunnel.errors import ParameterError
from privacyfunnel.model.uses.linear_use import parse_distance, parse_values
from privacyfunnel.model.uses.statistics_use import parse_balanced, parse_statistics
from privacyfunnel.model.uses.use import Information, Use
from privacyfunnel.names import suggest_name


def _parse_information(text: str) -> Information:
    if text:
        raise ParameterError(f"information is asked for as 'information', with nothing behind it; there is '{text}'.")
    return Information()


# What makes the use from what stands behind its name and a colon.
PARSERS: Mapping[str, Callable[[str], Use]] = MappingProxyType(
    {
        "information": _parse_information,
        "values": parse_values,
        "distance": parse_distance,
        "statistics": parse_statistics,
        "balanced": parse_balanced,
    }
)


def resolve_use(use: Use | str | None) -> Use | None:
    """The use, or the one that a text names, such as `balanced:0.97`; None for None.

    >>> resolve_use("balanced:0.97") == resolve_use(parse_use("balanced:97%"))
    True
    """
    return parse_use(use) if isinstance(use, str) else use


def parse_use(text: str) -> Use:
    """The use meant by a name, or by a name, a colon and what else is to be said.

    >>> parse_use("distance:squared").unit
    'expected squared error'
    >>> parse_use("informtion")
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: A use is one of information, values, distance, statistics, balanced; there \
is none called 'informtion'. Did you mean 'information'?
    """
    name, _, more = text.strip().partition(":")
    parse = PARSERS.get(name) or plugins.load_plugin(plugins.USES, name)
    if parse is None:
        known = (*PARSERS, *plugins.plugin_names(plugins.USES))
        raise ParameterError(
            f"A use is one of {', '.join(known)}; there is none called '{name}'.{suggest_name(name, known)}"
        )
    use: Use = parse(more.strip())
    return use
