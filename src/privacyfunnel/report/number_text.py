"""Numbers as people read them: percent, percentage points and factors, rounded to the side on which they stay true."""

from __future__ import annotations

import math

from privacyfunnel.release.findings.population import format_epsilon_upward

READABLE = math.log(10_000)  # ε: larger factors are written as powers


def format_percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """Two digits that matter, in percent; a limit from above is never rounded down, one from below never up.

    >>> (format_percent(0.1234), format_percent(0.000301),
    ...  format_percent(0.99961), format_percent(0.99961, up=True), format_percent(0.0))
    ('12 %', '0.030 %', '99.961 %', '99.961 %', '0 %')
    """
    value = 100 * share
    if value <= 0:
        return "0 %"
    if value >= 100:
        return "100 %"
    near = min(value, 100 - value)  # what is nearly all needs as many digits as what is nearly nothing
    digits = min(max(0, 1 - math.floor(math.log10(near))), 12) if near < 1 else (0 if value == round(value) else None)
    if digits is None:
        digits = 0 if near >= 10 else 1
    scale = 10.0**digits
    whole = value * scale
    rounded = math.ceil(whole - 1e-9) if up else math.floor(whole + 1e-9) if down else round(whole)
    return f"{rounded / scale:.{digits}f} %"


def format_factor(epsilon: float) -> str:
    """e^ε, never rounded down.

    >>> format_factor(1.0), format_factor(0.0), format_factor(800.0), format_factor(math.inf)
    ('2.72', '1', 'e^800', 'any number')
    """
    if math.isinf(epsilon):
        return "any number"
    return format_epsilon_upward(math.exp(epsilon)) if epsilon < READABLE else f"e^{format_epsilon_upward(epsilon)}"


def to_sentence(text: str) -> str:
    """With a capital letter in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
