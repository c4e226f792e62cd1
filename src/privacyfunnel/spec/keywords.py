"""Shorthand keywords of the functions that take a spec."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privacyfunnel.errors import ParameterError
from privacyfunnel.spec.release_spec import ReleaseSpec


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
