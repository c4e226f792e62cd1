"""Promises, uses and methods that other installed packages add, found by their entry points.

A package lists them in its pyproject.toml, under the names by which they are asked for:

    [project.entry-points."privacyfunnel.promises"]
    everyoneelse = "my_package:EveryoneElse"

They are looked for only where a name is not one of privacyfunnel's own, which no other package can replace.
"""

from __future__ import annotations

from typing import Any

from privacyfunnel.errors import ParameterError

PROMISES, USES, METHODS = "privacyfunnel.promises", "privacyfunnel.uses", "privacyfunnel.methods"
_loaded: dict[tuple[str, str], Any] = {}  # what was found once


def plugin_names(group: str) -> tuple[str, ...]:
    """The names that other packages add to a group."""
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group).names))


def load_plugin(group: str, name: str) -> Any | None:
    """What another package adds to a group under this name; None where none does."""
    if (group, name) in _loaded:
        return _loaded[group, name]
    from importlib.metadata import entry_points

    found = tuple(entry_points(group=group, name=name))
    if not found:
        return None
    if len({each.value for each in found}) > 1:
        packages = ", ".join(sorted({each.dist.name for each in found if each.dist is not None}))
        raise ParameterError(f"'{name}' is added by several packages: {packages}. Uninstall all but one.")
    try:
        loaded = found[0].load()
    except Exception as error:  # whatever a foreign module raises
        owner = "a package" if found[0].dist is None else f"package {found[0].dist.name}"
        raise ParameterError(
            f"'{name}' is added by {owner}, which cannot be loaded ({type(error).__name__}: {error}). Update or "
            "uninstall it."
        ) from error
    _loaded[group, name] = loaded
    return loaded
