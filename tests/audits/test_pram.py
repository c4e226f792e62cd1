"""Transition matrices as CSV files."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacyfunnel.audits.pram import decimals, read_matrix, write_matrix
from privacyfunnel.designs.baselines import conditional_reporting, randomised_response
from privacyfunnel.errors import DistributionError, TableError
from privacyfunnel.mechanisms.channel import ChannelMechanism
from privacyfunnel.mechanisms.sealing import seal
from privacyfunnel.model.joint import Joint
from privacyfunnel.model.promises import LIP

JOINT = Joint.from_counts([[30, 20, 10], [10, 20, 30]], values=["a", "b, or so", "c"], names=["letter"])


def test_a_matrix_comes_back_as_it_went(tmp_path: Path) -> None:
    sealed = seal(randomised_response(JOINT, LIP(0.3)), LIP(0.3), JOINT)
    write_matrix(sealed, tmp_path / "pram.csv")
    back = read_matrix(tmp_path / "pram.csv", JOINT)
    assert isinstance(sealed.mechanism, ChannelMechanism)
    np.testing.assert_allclose(back.channel, sealed.mechanism.channel, atol=1e-16)
    assert back.outputs == JOINT.values
    assert LIP(0).leakage(JOINT, back) == pytest.approx(0.3)
    lines = (tmp_path / "pram.csv").read_text().splitlines()
    assert lines[0] == 'letter,a,"b, or so",c'
    assert sum(Fraction(cell) for cell in lines[1].split(",")[1:]) == 1


def test_a_protocol_that_sees_the_secret_exports_the_channel_it_induces(tmp_path: Path) -> None:
    protocol = conditional_reporting(JOINT, LIP(0.3))
    sealed = seal(protocol, LIP(0.3), JOINT)
    write_matrix(sealed, tmp_path / "pram.csv")
    induced = protocol.joint_with_values(JOINT) / JOINT.p_x[:, None]
    np.testing.assert_allclose(read_matrix(tmp_path / "pram.csv", JOINT).channel, induced, atol=1e-9)


def test_several_columns_are_joined_and_split_again(tmp_path: Path) -> None:
    joint = Joint.from_counts(np.arange(1, 9).reshape(2, 2, 2), values=[["a", "b"], ["u", "v"]])
    write_matrix(seal(randomised_response(joint, LIP(0.1)), LIP(0.1), joint), tmp_path / "pram.csv")
    assert read_matrix(tmp_path / "pram.csv", joint).outputs == joint.values


def test_rows_are_found_by_their_label_and_rounded_ones_are_mended(tmp_path: Path) -> None:
    path = tmp_path / "pram.csv"
    path.write_text('"a","b, or so","c"\n"c",0,0,1\n"unused",1,0,0\n"b, or so",0,1,0\n"a",0.333333,0.333333,0.333333\n')
    protocol = read_matrix(path, JOINT)
    np.testing.assert_allclose(protocol.channel, np.array([[1 / 3, 1 / 3, 1 / 3], [0, 1, 0], [0, 0, 1]]))
    assert read_matrix(path).channel.shape == (4, 3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda row: sum(row) > 0.01))
@settings(max_examples=60, deadline=None)
def test_decimals_of_a_row_sum_to_one_exactly(row: list[float]) -> None:
    p = np.array(row) / sum(row)
    written = decimals(p)
    assert sum(map(Fraction, written)) == 1
    np.testing.assert_allclose([float(cell) for cell in written], p, atol=1e-15)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        ("", TableError, "must hold a header"),
        ("x,a,b\n", TableError, "must hold a header"),
        ("x,a,b\na,1\n", TableError, "must have 3 fields; 1 have not"),
        ("x,a,b\na,1,0\na,0,1\n", TableError, "original values .* must differ"),
        ("x,a,a\na,1,0\nb,0,1\n", TableError, "outputs .* must differ"),
        ("x,a,b\na,one,0\nb,0,1\n", DistributionError, "no numbers"),
        ("x,a,b\na,nan,0\nb,0,1\n", DistributionError, "not finite"),
        ("x,a,b\na,1.5,-0.5\nb,0,1\n", DistributionError, "negative"),
        ("x,a,b\na,0.5,0.4\nb,0,1\n", DistributionError, "1 of 2 do not. Original values are rows"),
        ("x,a,b\na,0.9,0.2\nb,0.1,0.8\n", DistributionError, "transpose"),
        ("x,a,b\na,1,0\nb,0,1\n", TableError, "2 of 3 have none"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, content: str, error: type[Exception], says: str) -> None:
    path = tmp_path / "pram.csv"
    path.write_text(content)
    with pytest.raises(error, match=says):
        read_matrix(path, JOINT)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no file"):
        read_matrix(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TableError, match="UTF-8"):
        read_matrix(tmp_path / "binary.csv")
    with pytest.raises(TableError, match="could not be read"):
        read_matrix(tmp_path)
