"""Every exception of the project, on one page.

    PrivacyFunnelError
    ├── InputError                the user can mend it: the command line exits with 2
    │   ├── ParameterError        an ε, gap, limit or name that cannot be
    │   ├── DistributionError     counts or probabilities that are no joint distribution
    │   ├── ColumnError           a column that is not there, or cannot be used this way
    │   │   └── MergedAwayError   one of which a single value would be left
    │   ├── TableError            a file that is no table, or cannot be read
    │   ├── OutputError           somewhere the results cannot be written
    │   ├── ProtocolFileError     a protocol file that is damaged, foreign or of another version
    │   ├── LedgerError           a ledger that is damaged or cannot be kept, or rows it remembers as released
    │   ├── SignatureError        a key or a signature that is not what it should be
    │   ├── SizeError             more than this method can hold or solve
    │   └── GuaranteeError        a promise that does not hold: nothing weaker is returned
    └── SolverError               ours: a solver did not finish its work; exits with 1

Each message says what must hold, what was found, and what to do. It names columns and counts, never a record.
"""

import math
from collections.abc import Callable
from typing import TypeVar

from privacyfunnel.hints import word_for_python


class PrivacyFunnelError(Exception):
    """Anything this library raises on purpose. Python users read it as text; other front ends word `sentence`."""

    retry = False  # whether the same call may succeed later: a server did not answer, a disk was full

    def __str__(self) -> str:
        return word_for_python(self.sentence)

    @property
    def sentence(self) -> str:
        """What is wrong and what to do, with the fields of the request as hints (hints.py)."""
        return super().__str__()


class InputError(PrivacyFunnelError):
    """Something the user gave cannot be used as it is."""


class ParameterError(InputError):
    """A number or name that was given is outside of what is allowed."""


class DistributionError(InputError):
    """Counts or probabilities that do not make a joint distribution."""


class ColumnError(InputError):
    """A column that does not exist or cannot play the part it was given."""


class MergedAwayError(ColumnError):
    """A column of which a single value would be left after rare values were merged."""


class TableError(InputError):
    """A file that cannot be read as a table."""


class OutputError(InputError):
    """A place where results cannot be written."""


class ProtocolFileError(InputError):
    """A protocol file that cannot be trusted or understood."""


class LedgerError(InputError):
    """A ledger that cannot be trusted or kept; or rows that it remembers as released already."""


class SignatureError(InputError):
    """A key that cannot be used, or a signature that is missing or wrong."""


class SizeError(InputError):
    """More values, outputs or combinations than can be held or solved."""


class GuaranteeError(InputError):
    """A promise that does not hold. Nothing weaker was returned."""


class SolverError(PrivacyFunnelError):
    """A solver stopped without a usable answer. This is a fault of the library, not of the input."""


Passing = TypeVar("Passing", bound=PrivacyFunnelError)


def make_retryable(error: Passing) -> Passing:
    """The error, marked as one that may pass by itself."""
    error.retry = True
    return error


def check_epsilon(epsilon: float | str) -> float:
    """ε as a float, or one sentence that says why it is none.

    >>> check_epsilon(1)
    1.0
    >>> check_epsilon(-1)
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: ε must be a finite number of at least 0; it is -1.
    """
    return _check_number("ε", epsilon, "a finite number of at least 0", lambda x: x >= 0)


LEAST_AVERAGE = 1e-9  # nats; below it a solver's tolerance decides


def check_average(average: float | str) -> float:
    """An amount of information on average as a float, or one sentence that says why it is none.

    >>> check_average(-1)
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: an average must be 0 or a finite number of nats, at least 1e-09; it is -1.
    """
    kind = f"0 or a finite number of nats, at least {LEAST_AVERAGE:g}"
    return _check_number("an average", average, kind, lambda x: x == 0 or x >= LEAST_AVERAGE)


def check_positive(name: str, value: float | str) -> float:
    """`value` as a float greater than 0, or one sentence that says why it is not.

    >>> check_positive("gap", 0)
    Traceback (most recent call last):
    ...
    privacyfunnel.errors.ParameterError: gap must be a finite number above 0; it is 0.
    """
    return _check_number(name, value, "a finite number above 0", lambda x: x > 0)


def _check_number(name: str, value: float | str, must: str, holds: Callable[[float], bool]) -> float:
    try:
        number = math.nan if "_" in str(value) else float(value)  # 1_0 is ten to Python, and a slip to everybody else
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number) or not holds(number):
        raise ParameterError(f"{name} must be {must}; it is {value}.")
    return number
