"""Files of real or synthetic records that were altered: refused, or the promise that they state holds in fractions."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privacyfunnel import ReleaseSpec, apply, sanitise
from privacyfunnel.audits.public_audit import audit_public
from privacyfunnel.errors import GuaranteeError, PrivacyFunnelError
from privacyfunnel.mechanisms.real_or_synthetic import RealOrSynthetic
from privacyfunnel.mechanisms.sealing import SealedProtocol, certify_at_model
from privacyfunnel.model.promises import LDP, LIP
from privacyfunnel.model.published.wide_model import WideModel
from tests.commands import refused
from tests.mechanisms.test_protocol_file import redigested
from tests.mechanisms.test_real_or_synthetic import keeps

Content = dict[str, Any]
UNIT = 1 << 32
MUTATIONS = 400  # of each release
SEEDS = (1, 2, 3)


def people(seed: int) -> pl.DataFrame:
    """Three columns that go with the secret."""
    rng = np.random.default_rng(seed)
    secret = rng.choice(2 + seed % 2, 9000)
    town = (secret + rng.choice(3, 9000, p=[0.6, 0.3, 0.1])) % 3
    sex = (rng.random(9000) < 0.3 + 0.3 * (secret == 0)).astype(int)
    age = (town + rng.choice(3, 9000, p=[0.5, 0.3, 0.2])) % 3
    return pl.DataFrame({"s": [f"s{v}" for v in secret], "town": town, "sex": sex, "age": age}).with_columns(
        pl.col("town", "sex", "age").cast(pl.String)
    )


@pytest.fixture(scope="module", params=SEEDS)
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide") / "out"
    promise = "ldp" if request.param == 3 else "lip"
    spec = ReleaseSpec(
        secret="s", publish=["town", "sex", "age"], epsilon=1.5, promise=promise, prior="model", seed=request.param
    )
    sanitise(people(request.param), spec).save(folder)
    return folder / "public"


def content_of(folder: Path) -> Content:
    content: Content = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    return content


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with a key of it."""
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield node, key
            yield from places(node[key])


def mutate(content: Content, rng: random.Random) -> None:
    """One to three random changes of any part."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        part = content.get(rng.choice(["law", "law", "model", "model", "promise", "certificate"]))
        node, key = rng.choice([*places(part)] or [(content, "law")])
        value = node.get(key) if isinstance(node, dict) else node[key]
        if isinstance(value, bool) or value is None:
            node[key] = rng.choice([True, False, None, 0])
        elif isinstance(value, int):
            changes = [value + 1, value - 1, value * 2, value // 2, 0, UNIT, -value, UNIT - value, rng.randrange(UNIT)]
            node[key] = rng.choice([*changes, value + 2**20, value - 2**20, value * 101 // 100, 1 << 63, float(value)])
        elif isinstance(value, float):
            node[key] = rng.choice([value * 1.01, value * 0.99, value / 2, value * 2, 0.0, 1e-12, -value, 1e300])
        elif isinstance(value, str):
            node[key] = rng.choice([value + "0", "", "LIP", "LDP", "SRLIP", "1/1000000", "2", "-1"])
        elif isinstance(value, list) and value:
            chosen = rng.randrange(5)
            if chosen == 0:
                rng.shuffle(value)
            elif chosen == 1:
                value.pop(rng.randrange(len(value)))
            elif chosen == 2:
                value.append(copy.deepcopy(rng.choice(value)))
            elif chosen == 3:
                value[rng.randrange(len(value))] = copy.deepcopy(rng.choice(value))
            else:
                value.reverse()
        elif isinstance(node, dict):
            node.pop(key, None)


def accepted(text: str) -> SealedProtocol | None:
    """The protocol of a file that is read and whose promise is confirmed, or nothing."""
    try:
        sealed = SealedProtocol.from_text(text)
        certified = certify_at_model(sealed)
    except PrivacyFunnelError:
        return None
    assert certified <= sealed.promise.epsilon
    return sealed


def holds(sealed: SealedProtocol) -> bool:
    """Whether what the file states is so, in fractions, from the integers that would be drawn."""
    assert isinstance(sealed.mechanism, RealOrSynthetic)
    assert isinstance(sealed.model, WideModel)
    assert type(sealed.promise) in (LIP, LDP)
    return keeps(sealed.mechanism)


def test_whatever_random_change_is_accepted_keeps_the_promise_it_states(released: Path) -> None:
    whole, rng = content_of(released), random.Random(33)
    taken = 0
    for number in range(MUTATIONS):
        content = copy.deepcopy(whole)
        mutate(content, rng)
        sealed = accepted(redigested(content))
        if sealed is not None:
            taken += 1
            assert holds(sealed), number
    assert taken > MUTATIONS // 20  # else nothing was looked at


def _scale(name: str, factor: float) -> Callable[[Content], None]:
    def change(content: Content) -> None:
        content["law"][name] = np.minimum(np.array(content["law"][name]) * factor, UNIT).astype(int).tolist()

    return change


def _accept_own(content: Content) -> None:
    """A record is replaced by one of its own class only, so that synthetic ones show it."""
    classes = len(content["law"]["acceptance"])
    content["law"]["acceptance"] = (np.eye(classes, dtype=int) * UNIT).tolist()


def _skew_model(content: Content) -> None:
    """The shares of the secrets are others than those that the slacks were proved for."""
    shares = content["model"]["shares"]
    part = shares[0] // 2
    shares[0], shares[-1] = shares[0] - part, shares[-1] + part


def _state_less(content: Content) -> None:
    content["certificate"]["epsilon"] = content["promise"]["epsilon"] * 0.9


def _spend_more(content: Content) -> None:
    content["model"]["epsilon"] = content["model"]["total_epsilon"]


def _simulate(content: Content) -> None:
    content["law"] |= {"proof_records": 1, "slacks": (np.array(content["law"]["slacks"]) * 2).tolist()}


BREAKING: dict[str, Callable[[Content], None]] = {
    "slacks": _scale("slacks", 1.5),
    "a proof of one record": _simulate,
    "decoys of one's own class": _accept_own,
    "another model": _skew_model,
    "a smaller certificate": _state_less,
    "all of ε spent on the model": _spend_more,
}


@pytest.mark.parametrize("what", BREAKING)
def test_what_breaks_the_promise_is_named_by_an_audit_of_the_public_file(
    released: Path, tmp_path: Path, what: str
) -> None:
    content = content_of(released)
    (tmp_path / "whole.json").write_text(redigested(content), encoding="utf-8")
    audit_public(tmp_path / "whole.json")
    BREAKING[what](content)
    (tmp_path / "protocol.json").write_text(redigested(content), encoding="utf-8")
    with pytest.raises(PrivacyFunnelError):
        audit_public(tmp_path / "protocol.json")


def test_a_smaller_promise_is_refused_or_kept_by_fewer_real_rows(released: Path) -> None:
    """The guard of every record follows from the ε that the file states."""
    for factor in (0.99, 0.9, 0.5, 0.1, 0.01):
        content = content_of(released)
        content["promise"]["epsilon"] = content["certificate"]["epsilon"] = content["promise"]["epsilon"] * factor
        sealed = accepted(redigested(content))
        assert sealed is None or holds(sealed), factor


def test_rows_are_drawn_by_no_altered_file(released: Path, tmp_path: Path) -> None:
    content, rows = content_of(released), people(1).drop("s")
    for name, change in (("whole", lambda _: None), ("altered", _accept_own)):
        change(content)
        (tmp_path / f"{name}.json").write_text(redigested(content), encoding="utf-8")
    assert apply(tmp_path / "whole.json", rows).rows == len(rows)
    with pytest.raises(GuaranteeError, match="Nothing was drawn"):
        apply(tmp_path / "altered.json", rows)
    rows.write_csv(tmp_path / "rows.csv")
    words = ["apply", tmp_path / "altered.json", tmp_path / "rows.csv", "--into", tmp_path / "drawn.csv"]
    refused(words, "GuaranteeError", "Nothing was drawn")
    assert not (tmp_path / "drawn.csv").exists()
