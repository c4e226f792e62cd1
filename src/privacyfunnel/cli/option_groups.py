"""Options that go together: a command takes them as one value, a user gives them one by one.

`spread` makes of `design(*, reading: Reading)` what `design(*, delimiter: …, encoding: …)` would be to typer, for every
parameter that is a dataclass of options. So a group of options is named, described and turned into the rooms' words in
one place, whatever number of commands take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups in place of the groups."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        given = {name: _gather(group, options) for name, group in groups.items()}
        command(*arguments, **options, **given)

    single = [
        one
        for parameter in signature(command).parameters.values()
        for one in (
            _options(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(annotation=hints[parameter.name])]
        )
    ]
    vars(run)["__signature__"] = Signature(single)
    run.__annotations__ = {one.name: one.annotation for one in single}
    return run


def _gather(group: type, options: dict[str, Any]) -> Any:
    """The group's value, of options that are thereby used up."""
    return group(**{option.name: options.pop(option.name) for option in fields(group)})


def _options(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for option in fields(group):
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=_default(option), annotation=hints[option.name])


def _default(option: Field[Any]) -> Any:
    return Parameter.empty if option.default is MISSING else option.default
