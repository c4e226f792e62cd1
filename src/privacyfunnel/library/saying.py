"""Sentences for Python users: they name arguments, not options of the command line."""

from __future__ import annotations

import re

RENAMED = {"for": "use", "as": "as_", "order": "chain_order", "na": "dialect"}  # options whose arguments differ
_BIN = re.compile(r"--bin '?([^\s=]+)=([^\s']*[^\s.;,'…])'?")
_VALUE = re.compile(r"--([a-z]+(?:-[a-z]+)*)[ =]('[^']*'|[0-9][^\s;,]*[0-9%]|[0-9]|[A-Z]+\b|[.,](?=[\s.]|$))")
_BARE = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


def in_python(sentence: str) -> str:
    """The sentence with arguments in place of options.

    >>> in_python("Bin them with --bin age=0,20,40 or --bin age=quantiles:8, or keep each with --bin age=values.")
    'Bin them with bins={"age": "0,20,40"} or bins={"age": "quantiles:8"}, or keep each with bins={"age": "values"}.'
    >>> in_python("Use --merge-rare 10, or leave out --sees-secret.")
    'Use merge_rare=10, or leave out sees_secret.'
    """
    sentence = _BIN.sub(r'bins={"\1": "\2"}', sentence)
    sentence = _VALUE.sub(lambda found: f"{_argument(found[1])}={found[2]}", sentence)
    return _BARE.sub(lambda found: _argument(found[1]), sentence)


def _argument(option: str) -> str:
    return RENAMED.get(option, option.replace("-", "_"))
