"""What may differ between a stored record and a new one.

Names, truths and whole numbers are the same. Other numbers are the same up to the last digits, which libraries differ
in. Where a solver chose the mechanism, its value may be worse by 2 % and the gap to its bound wider by 2 % of the
value; it may be better, but neither the new value nor the new bound may contradict what was proved before. A
certificate never exceeds its promise, without any tolerance, and stays within 2 % of it.
"""

import math
from collections.abc import Iterator
from typing import Any

from tests.golden.record import Record

WORSE = 0.02  # of a value: how much worse it and its gap may be
LAST_DIGITS = 1e-6  # relative, of numbers that no solver chose
NOTHING = 1e-6  # of a value or a share: smaller is zero
PROVED = 1e-4  # relative: how precisely two proofs are compared


def differences(stored: Record, found: Record) -> list[str]:
    """A sentence for each quantity that is not as it was."""
    names = [*stored, *(name for name in found if name not in stored)]
    return [f"{name}: {sentence}" for name in names for sentence in _different(stored.get(name), found.get(name))]


def _different(stored: Any, found: Any) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(found, dict):
        yield from (_objective if "better" in stored else _certificate)(stored, found)
    elif not _same(stored, found):
        yield f"was {stored}, is {found}"


def _same(stored: Any, found: Any) -> bool:
    if isinstance(stored, list) and isinstance(found, list):
        return len(stored) == len(found) and all(map(_same, stored, found))
    if isinstance(stored, float) or isinstance(found, float):
        numbers = all(isinstance(number, (int, float)) for number in (stored, found))
        return numbers and math.isclose(stored, found, rel_tol=LAST_DIGITS, abs_tol=NOTHING)
    return type(stored) is type(found) and bool(stored == found)


def _certificate(stored: Record, found: Record) -> Iterator[str]:
    promised, certified = found["promised"], found["certified"]
    if not _same(stored["promised"], promised):
        yield f"promised {stored['promised']} before, {promised} now"
    elif promised is not None and certified > promised:
        yield f"certified {certified}, which exceeds the promised {promised}"
    elif promised is not None and abs(certified - stored["certified"]) > WORSE * promised:
        yield f"certified {stored['certified']} before, {certified} now"


def _objective(stored: Record, found: Record) -> Iterator[str]:
    if stored["better"] != found["better"]:
        yield f"{stored['better']} was better, {found['better']} is"
        return
    sign = 1 if stored["better"] == "less" else -1
    before, now = sign * stored["value"], sign * found["value"]
    if now > before + WORSE * abs(before) + NOTHING:
        yield f"value {found['value']} is worse than {stored['value']}"
    if stored["bound"] is None:
        return
    if found["bound"] is None:
        yield f"had the bound {stored['bound']}, has none"
        return
    proved, bound = sign * stored["bound"], sign * found["bound"]
    slack = PROVED * abs(before) + NOTHING
    if now < proved - slack:
        yield f"value {found['value']} is better than {stored['bound']}, which was proved to be the best"
    if bound > before + slack:
        yield f"bound {found['bound']} excludes {stored['value']}, which was reached"
    if now - bound > before - proved + WORSE * abs(before) + NOTHING:
        yield f"gap {now - bound:.3g} is wider than {before - proved:.3g}"
