"""Shorthand and older keywords of the functions that take a spec."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from privacyfunnel.errors import ParameterError
from privacyfunnel.spec.release_spec import ReleaseSpec, known_values

P = ParamSpec("P")
T = TypeVar("T")
_RENAMED = {"key": "key_file", "suffix": "format"}


def combine(spec: ReleaseSpec | None, **shorthand: Any) -> ReleaseSpec:
    """The spec with the shorthand keywords that were given in place of its own values.

    >>> combine(ReleaseSpec(secret="s", publish="x", epsilon=1), epsilon=2, keep=()).epsilon
    2.0
    """
    if spec is not None and not isinstance(spec, ReleaseSpec):
        raise ParameterError(
            f"The request must be a ReleaseSpec; got a {type(spec).__name__}. Write "
            'ReleaseSpec(secret="illness", publish="town", epsilon=1).'
        )
    given = {name: value for name, value in shorthand.items() if value is not None and value != ()}
    return replace(spec or ReleaseSpec(), **given)


def require_spec(spec: Any, call: str) -> ReleaseSpec:
    """The spec of a function on files, or the sentence that says what replaces its older arguments."""
    if isinstance(spec, ReleaseSpec):
        return spec
    raise ParameterError(
        f"The request must be a ReleaseSpec; got a {type(spec).__name__}. Output, format and ledger are fields of it: "
        f'{call}, ReleaseSpec(secret="illness", publish="town", epsilon=1, into="out")).'
    )


def accept_older_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which takes other fields of a spec as keywords too, as it did once, with a warning."""
    known = signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        older = {name: kwargs.pop(name) for name in list(kwargs) if name not in known}
        if not older:
            return function(*args, **kwargs)
        if "random_state" in older:
            raise ParameterError(
                "Draws that are published come from the operating system, and cannot be repeated. For tests there is "
                "ReleaseSpec(seed=…), whose draws are marked as not for publication."
            )
        if kwargs.get("spec") is not None:
            raise ParameterError(
                f"{', '.join(older)} must be in the spec, as one was given. Write replace(spec, {next(iter(older))}=…)."
            )
        warnings.warn(
            f"{function.__name__}(…, {next(iter(older))}=…) goes with 0.3; give a ReleaseSpec(…, "
            f"{next(iter(older))}=…) instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        kwargs["spec"] = ReleaseSpec(**known_values(_rename(older)))
        return function(*args, **kwargs)

    return call


def _rename(older: dict[str, Any]) -> dict[str, Any]:
    effort = older.pop("effort", None)
    if effort is not None:
        older.update(gap=effort.gap, time_limit=effort.time_limit)
    return {_RENAMED.get(name, name): value for name, value in older.items() if value is not None}
