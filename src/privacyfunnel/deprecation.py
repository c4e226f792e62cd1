"""Deprecated names: an old name of a member works, warns, and says which name replaces it.

>>> class Channel:
...     def outputs(self) -> int:
...         return 3
...     results = DeprecatedAlias("outputs")
>>> import warnings
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     Channel().results(), str(caught[0].message)
(3, 'Channel.results is deprecated; use Channel.outputs.')
"""

from __future__ import annotations

import warnings
from typing import Any


class DeprecatedAlias:
    """The old name of a member of a class."""

    def __init__(self, replacement: str) -> None:
        self.replacement = replacement

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.owner = name, owner.__name__

    def warn(self, stacklevel: int) -> None:
        """Say which name replaces this one."""
        message = f"{self.owner}.{self.name} is deprecated; use {self.owner}.{self.replacement}."
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.warn(2)
        return getattr(owner if instance is None else instance, self.replacement)


def adopt_deprecated_overrides(cls: type) -> None:
    """Let a subclass that overrides members by their old names override the new ones; call in `__init_subclass__`."""
    for base in cls.__mro__[1:]:
        for name, alias in vars(base).items():
            if isinstance(alias, DeprecatedAlias) and name in vars(cls):
                alias.warn(3)
                if alias.replacement not in vars(cls):
                    setattr(cls, alias.replacement, vars(cls)[name])
