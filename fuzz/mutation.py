"""A mutation that keeps JSON whole: one place in it is replaced, removed or repeated."""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.9, 1e308, -0.0, 2**63, 2**64, 2**64 - 1, 10**40),
    *("", "0", "1_0", "-1", "x", "\u0000", "\ud800", "NaN", "18446744073709551616", " 1", "9" * 500),
    *([], {}, [[]], [0], ["a", "a"], [None], {"": 0}, [[[]]], [1] * 300),
)


def mutated(data: bytes, seed: int) -> bytes:
    """The same JSON but for one place; what is no JSON is returned as it is."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    draw = random.Random(seed)
    places = [*_places(content)]
    if places:
        holder, key = draw.choice(places)
        change = draw.randrange(4)
        if change == 0:
            del holder[key]
        elif change == 1 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif change == 2:
            other, name = draw.choice(places)
            holder[key] = json.loads(json.dumps(other[name]))
        else:
            holder[key] = draw.choice(ODD)
    return json.dumps(content).encode()


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Every container in it, with a key of it."""
    found, waiting = [], [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found
