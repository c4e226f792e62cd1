"""protocol.json: what is saved is what is loaded, and what was touched is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privacyfunnel import (
    LDP,
    LIP,
    Joint,
    SealedProtocol,
    conditional_reporting,
    randomised_response,
    seal,
)
from privacyfunnel.errors import GuaranteeError, OutputError, ParameterError, ProtocolFileError
from privacyfunnel.mechanisms.certificate import round_epsilon_up
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sampling import KeyStream
from privacyfunnel.mechanisms.sealing import certify
from privacyfunnel.model.promises import PriorsPromise
from privacyfunnel.spec import ReleaseSpec

TABLE = Joint.from_counts(
    [[50, 10, 30], [20, 70, 10]],
    secret=["sì", "no"],
    values=["α", "a | b", 'quo"te'],
    names=["city"],
    secret_name="ill",
)
TWO_COLUMNS = Joint.from_counts(np.array([[[5, 0], [1, 2]], [[0, 3], [4, 1]]]), names=["u", "v"])
MAKERS = [randomised_response, conditional_reporting]


def redigested(content: dict[str, Any]) -> str:
    """The content with a digest that fits, as someone would write it who alters a file with care."""
    content = {key: value for key, value in content.items() if key != "digest"}
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "digest": hashlib.sha256(canonical.encode()).hexdigest()})


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("joint", [TABLE, TWO_COLUMNS])
def test_a_loaded_protocol_draws_and_certifies_like_the_saved_one(maker: Any, joint: Joint, tmp_path: Path) -> None:
    sealed = seal(maker(joint, LIP(0.7)), LIP(0.7), joint)
    sealed.save(tmp_path / "protocol.json")
    loaded = SealedProtocol.load(tmp_path / "protocol.json")
    assert sealed.epsilon == certify(loaded.mechanism, loaded.promise, joint)
    assert sealed.epsilon <= loaded.epsilon == round_epsilon_up(sealed.epsilon, 0.7) <= 0.7
    assert 0 <= sealed.information - loaded.information <= 1e-4
    assert 0 <= loaded.entropy - sealed.entropy <= 1e-4
    assert loaded.bound == sealed.bound is None
    assert loaded.domain.attributes == joint.attributes
    np.testing.assert_array_equal(loaded.domain.combos, joint.combos)
    codes = np.arange(1000) % (joint.a * (joint.c if sealed.sees_secret else 1))
    one, other = (p.sample(codes, KeyStream.from_seed(3)) for p in (sealed, loaded))
    np.testing.assert_array_equal(one, other)
    assert loaded.mechanism.columns == sealed.mechanism.columns


def test_the_public_file_holds_no_counts_and_no_secret_labels_unless_needed(tmp_path: Path) -> None:
    sealed = seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE)
    sealed.save(tmp_path / "protocol.json")
    text = (tmp_path / "protocol.json").read_text(encoding="utf-8")
    assert "sì" not in text
    assert '"ill"' in text
    assert not any(key in text for key in ("count", "weight"))


def test_the_induced_channel_of_a_protocol_that_sees_the_secret_is_published(tmp_path: Path) -> None:
    protocol = conditional_reporting(TABLE, LIP(0.7))
    sealed = seal(protocol, LIP(0.7), TABLE)
    sealed.save(tmp_path / "protocol.json")
    induced = SealedProtocol.load(tmp_path / "protocol.json").induced
    assert induced is not None
    np.testing.assert_allclose(induced, protocol.joint_with_values(TABLE) / TABLE.p_x[:, None], atol=1e-12)


def test_existing_files_stay_unless_asked(tmp_path: Path) -> None:
    sealed = seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE)
    path = tmp_path / "protocol.json"
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        sealed.save(path)
    assert path.read_text() == "mine"
    sealed.save(path, force=True)
    assert SealedProtocol.load(path).epsilon == sealed.epsilon
    assert [p.name for p in tmp_path.iterdir()] == ["protocol.json"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(version=2), "version 2"),
        (lambda c: c.update(format="something"), "no protocol file"),
        (lambda c: c["promise"].update(epsilon=0.1), "promised"),
        (lambda c: c["promise"].update(epsilon="much"), "promise.epsilon must be a number; it is text"),
        (lambda c: c["law"]["rows"][0][0].__setitem__(1, "17"), "sum to"),
        (lambda c: c["law"]["rows"][0][0].__setitem__(0, 99), "belong to an output"),
        (lambda c: c["law"]["rows"][0][0].__setitem__(0, c["law"]["rows"][0][1][0]), "name an output once"),
        (
            lambda c: c["law"]["rows"][0][0].__setitem__(1, "many"),
            r"law\.rows\[0\]\[0\]\[1\] must be written as the schema says; it is 'many'",
        ),
        (lambda c: c["law"]["rows"].pop(), "a row for each of 3 inputs"),
        (lambda c: c["secret"].update(columns=[]), "secret.columns must have at least 1 entries; it has 0"),
        (lambda c: c["secret"].update(columns=["city"]), "each once"),
        (lambda c: c["law"].update(bits=32), "law.bits must be 64; it is 32"),
        (lambda c: c["law"]["outputs"].__setitem__(0, []), r"law.outputs\[0\] must have at least 1"),
        (lambda c: c["law"]["outputs"].__setitem__(0, ["a", "b"]), "a label for each of 1 columns"),
        (lambda c: c["certificate"].update(information_nats=99), "information kept"),
        (lambda c: c["certificate"].update(bound_nats=0), "information kept"),
        (lambda c: c.pop("law"), "the file must state 'law'; it does not"),
        (lambda c: c.update(kind="magic"), "kind must be one of \"channel\", .*; it is 'magic'"),
        (lambda c: c.update(publish=[]), "publish must have at least 1"),
    ],
)
def test_an_altered_file_is_refused_with_one_sentence(change: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(redigested(content), encoding="utf-8")
    with pytest.raises(ProtocolFileError, match=says):
        SealedProtocol.load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "NaN", "[" * 100_000])
def test_what_is_no_protocol_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    path.write_text(text)
    with pytest.raises(ProtocolFileError):
        SealedProtocol.load(path)


def test_damage_is_noticed_by_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE).save(path)
    path.write_text(path.read_text(encoding="utf-8").replace("quo", "kwo"), encoding="utf-8")
    with pytest.raises(ProtocolFileError, match="digest"):
        SealedProtocol.load(path)


def test_missing_binary_and_foreign_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProtocolFileError, match="no protocol file"):
        SealedProtocol.load(tmp_path / "nowhere.json")
    with pytest.raises(ProtocolFileError, match=r"holds no protocol\.json.*Name the file"):
        SealedProtocol.load(tmp_path)
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)))
    with pytest.raises(ProtocolFileError, match="UTF-8"):
        SealedProtocol.load(tmp_path / "binary")


def test_an_alteration_that_leaks_more_fails_certification(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(randomised_response(TABLE, LIP(0.3)), LIP(0.3), TABLE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["law"]["rows"] = [[[x, str(2**64)]] for x in range(3)]
    path.write_text(redigested(content), encoding="utf-8")
    loaded = SealedProtocol.load(path)
    assert isinstance(loaded.mechanism, ChannelMechanism)
    with pytest.raises(GuaranteeError, match=r"promised ε = 0.3"):
        certify(loaded.mechanism, loaded.promise, TABLE)
    with pytest.raises(GuaranteeError):
        certify(loaded.mechanism, LDP(0.3), TABLE)


PRIORS = (
    Joint.from_counts([[5, 1, 3], [2, 8, 1]], ["sì", "no"], ["α", "a | b", 'quo"te'], names=["city"]),
    Joint.from_counts(np.array([[6, 2, 3], [2, 8, 1]]).astype(object) * 3**60, values=["α", "a | b", 'quo"te']),
)
FOR_PRIORS = LIP(0.7).for_priors([replace(prior, attributes=TABLE.attributes) for prior in PRIORS])


@pytest.mark.parametrize("maker", [randomised_response])
def test_a_promise_for_several_priors_is_loaded_as_it_was_saved(maker: Any, tmp_path: Path) -> None:
    sealed = seal(maker(TABLE, FOR_PRIORS), FOR_PRIORS, TABLE)
    sealed.save(tmp_path / "protocol.json")
    loaded = SealedProtocol.load(tmp_path / "protocol.json")
    promise = loaded.promise
    assert isinstance(promise, PriorsPromise)
    assert (promise.promise, promise.name, promise.epsilon) == (LIP(0.7), "LIP", 0.7)
    for prior, stated in zip(FOR_PRIORS.priors, promise.priors, strict=True):
        assert (stated.p_sx == prior.p_sx).all()
        assert (stated.secrets, stated.secret_name, stated.attributes) == (
            prior.secrets,
            prior.secret_name,
            prior.attributes,
        )
    assert promise.leakage(TABLE, loaded.mechanism.protocol) == FOR_PRIORS.leakage(TABLE, sealed.mechanism.protocol)
    assert certify(loaded.mechanism, promise, TABLE) == sealed.epsilon
    assert json.loads(loaded.to_text()) == json.loads(sealed.to_text())


def test_a_law_that_only_the_tables_own_prior_allows_is_not_certified_for_the_others(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(randomised_response(TABLE, FOR_PRIORS), FOR_PRIORS, TABLE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    louder = seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE).mechanism
    content["law"] = louder.to_json()
    path.write_text(redigested(content), encoding="utf-8")
    loaded = SealedProtocol.load(path)
    assert certify(loaded.mechanism, LIP(0.7), TABLE) <= 0.7
    with pytest.raises(GuaranteeError, match=r"promised ε = 0.7"):
        certify(loaded.mechanism, loaded.promise, TABLE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p["priors"][0]["p"][0].__setitem__(0, "-5"), "must be written as the schema says"),
        (lambda p: p["priors"][0]["p"].pop(), "a chance of at least 0 for each of 3 values"),
        (lambda p: p["priors"][0]["p"][0].pop(), "incomplete or inconsistent|for each of 3 values"),
        (lambda p: p["priors"][0]["p"][0].__setitem__(0, "nan"), "must be written as the schema says"),
        (lambda p: p["priors"][0].update(p=[["0"] * 3, ["1"] * 3]), "must occur"),
        (lambda p: p["promise"].update(epsilon=3.0), "called like the one it is made of"),
        (lambda p: p.update(epsilon=3.0), "called like the one it is made of"),
        (lambda p: p["promise"].update(name="LDP"), "called like the one it is made of"),
        (lambda p: p.pop("promise"), "promise must state 'promise'; it does not"),
        (lambda p: p.update(priors=None), "promise.priors must be a list; it is null"),
    ],
)
def test_altered_priors_are_refused_with_one_sentence(change: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(randomised_response(TABLE, FOR_PRIORS), FOR_PRIORS, TABLE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content["promise"])
    path.write_text(redigested(content), encoding="utf-8")
    with pytest.raises(ProtocolFileError, match=says):
        SealedProtocol.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["certificate"].update(epsilon="nan"), "certificate.epsilon must be a number; it is text"),
        (lambda c: c["certificate"].update(information_error_nats="nan"), "information_error_nats must be a number"),
        (lambda c: c["induced"][0].__setitem__(0, "nan"), r"induced\[0\]\[0\] must be a number; it is text"),
        (lambda c: c["induced"][0].__setitem__(0, 0.5 * c["induced"][0][0]), "must be distributions"),
        (lambda c: c["induced"][0].__setitem__(0, 1.5), "must lie between 0 and 1"),
        (lambda c: c["induced"][0].append(0.0), "for each of 3 values and 3 outputs"),
        (lambda c: c["induced"].pop(), "for each of 3 values and 3 outputs"),
    ],
)
def test_what_is_no_number_or_no_distribution_passes_no_check(change: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    seal(conditional_reporting(TABLE, LIP(0.7)), LIP(0.7), TABLE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(redigested(content), encoding="utf-8")
    with pytest.raises(ProtocolFileError, match=says):
        SealedProtocol.load(path)


def test_a_file_of_a_method_that_is_gone_says_what_replaces_it() -> None:
    content = json.loads(seal(randomised_response(TABLE, LIP(0.7)), LIP(0.7), TABLE).to_text())
    for kind in ("chain", "forced-response", "product", "unary-encoding"):
        with pytest.raises(ProtocolFileError, match=rf"the method {kind}, which .* with privacyfunnel \d+\.\d+\.\d+"):
            SealedProtocol.from_text(redigested(content | {"kind": kind}))
    with pytest.raises(ParameterError, match=r"none called 'product'\. It was removed: use optimal"):
        ReleaseSpec(prior="table", secret="s", publish="x", epsilon=1, method="product")
