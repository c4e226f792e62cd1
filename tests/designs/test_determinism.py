"""Without a time limit the same table gives the same protocol, however slow or busy the machine is."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.designs.interface import Effort, Options
from privacyfunnel.designs.methods import find_method
from privacyfunnel.engine.clock import WORK
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LDP, LIP, SRLIP, Promise
from privacyfunnel.model.uses.statistics_use import Statistics
from privacyfunnel.release.sanitise import sanitise
from privacyfunnel.spec import ReleaseSpec
from tests.engine.problems import random_joint

LITTLE = 0.2  # nominal seconds of counted work, too few for any of these tables


@pytest.fixture
def slow_down(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, every look at the wall clock takes half a minute."""
    ticks = itertools.count(0, 30)
    return lambda: monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))


def protocol_bytes(method: str, joint: Joint, promise: Promise, options: Options, path: Path) -> bytes:
    find_method(method).design(joint, promise, options).seal().save(path, force=True)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("method", "joint", "promise", "options"),
    [
        ("optimal", random_joint(5, (6, 60), 0.3), LDP(0.7), Options()),
        ("optimal", random_joint(5, (5, 400), 0.3), LIP(0.7), Options()),
        ("optimal", random_joint(5, (3, 4, 4, 4), 0.3), SRLIP(0.5), Options()),
        ("optimal", random_joint(5, (5, 12), 0.3), LDP(0.7), Options(sees_secret=True)),
        ("optimal", random_joint(5, (6, 20), 0.3), LDP(0.7), Options(use=Statistics())),
        ("optimal", random_joint(5, (6, 30), 0.3), LIP(0.7), Options(average=0.1)),
    ],
    ids=["ldp", "lip", "srlip", "sees-secret", "statistics", "average"],
)
def test_counted_work_ends_a_design_at_the_same_protocol_on_a_slow_machine(
    method: str, joint: Joint, promise: Promise, options: Options, slow_down: Callable[[], None], tmp_path: Path
) -> None:
    limited = Options(
        sees_secret=options.sees_secret,
        use=options.use,
        average=options.average,
        effort=Effort(1e-9, work_limit=LITTLE),
    )
    before = WORK.seconds
    first = protocol_bytes(method, joint, promise, limited, tmp_path / "protocol.json")
    spent = WORK.seconds - before
    slow_down()
    assert protocol_bytes(method, joint, promise, limited, tmp_path / "protocol.json") == first
    assert WORK.seconds - before == pytest.approx(2 * spent)


def test_a_release_without_a_time_limit_has_the_same_protocol_on_a_slow_machine(
    adult: Path, slow_down: Callable[[], None], tmp_path: Path
) -> None:
    people = pl.read_csv(adult, infer_schema=False).head(3000)
    spec = ReleaseSpec(prior="table", secret="occupation", publish=("education",), promise=LIP(1.0), seed=1)
    saved = []
    for slow in (False, True):
        if slow:
            slow_down()
        sanitise(people, spec).sealed.save(tmp_path / "protocol.json", force=True)
        saved.append((tmp_path / "protocol.json").read_bytes())
    assert saved[0] == saved[1]
