"""What Python users call: the rooms' own functions, whose errors name arguments and whose releases show themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from privacyfunnel.audits.protocol_audit import audit as _audit
from privacyfunnel.audits.scan import scan as _scan
from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.estimation import estimate as _estimate
from privacyfunnel.estimation import impute as _impute
from privacyfunnel.library.release import Release
from privacyfunnel.library.saying import in_python
from privacyfunnel.release import release as room
from privacyfunnel.release.apply import apply as _apply
from privacyfunnel.release.apply import apply_file as _apply_file
from privacyfunnel.release.design import design as _design
from privacyfunnel.release.design import design_file as _design_file
from privacyfunnel.release.sanitise import sanitise as _sanitise
from privacyfunnel.release.sanitise import sanitise_file as _sanitise_file

P = ParamSpec("P")
T = TypeVar("T")


def told_in_python(function: Callable[P, T]) -> Callable[P, T]:
    """The function, whose errors say what to do in Python."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except PrivacyFunnelError as error:
            sentence = in_python(str(error))
            if sentence == str(error):
                raise
            raise type(error)(sentence) from error

    return called


def released(function: Callable[P, room.Release]) -> Callable[P, Release]:
    """The function, whose release shows itself in a notebook and can be saved."""
    told = told_in_python(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Release:
        return Release.of(told(*args, **kwargs))

    return called


sanitise = released(_sanitise)
sanitise_file = released(_sanitise_file)
design = told_in_python(_design)
design_file = told_in_python(_design_file)
apply = told_in_python(_apply)
apply_file = told_in_python(_apply_file)
scan = told_in_python(_scan)
audit = told_in_python(_audit)
estimate = told_in_python(_estimate)
impute = told_in_python(_impute)
