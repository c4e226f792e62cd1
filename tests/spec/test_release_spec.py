"""The one request: checked at birth, the same from Python, TOML and the command line, and described once."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from scripts.make_spec_docs import json_schema, options_table, schema_text

import privacyfunnel as pf
from privacyfunnel.cli import main
from privacyfunnel.errors import ColumnError, InputError, LedgerError, ParameterError, TableError
from privacyfunnel.hints import hint, word_for_command_line, word_for_python
from privacyfunnel.model.each_secret import Each
from privacyfunnel.model.promises import LIP
from privacyfunnel.spec import FIELDS, ReleaseSpec
from privacyfunnel.spec.release_spec import parse_options
from privacyfunnel.spec.text_forms import command_words, plain_values


def run(*words: str) -> None:
    """Run a command that must succeed."""
    assert main(list(words)) == 0


ROOT = Path(__file__).parents[2]
PEOPLE = pl.DataFrame({"ill": ["y", "n", "n", "y"] * 60, "town": ["u", "v", "u", "w"] * 60, "age": list(range(80)) * 3})
FULL: dict[str, Any] = {
    "secret": ("ill", "a, b"),
    "publish": ("town", "age"),
    "keep": ("year",),
    "factor": 2.0,
    "promise": "ldp",
    "population": 0.95,
    "use": "statistics:town",
    "ordered": {"town": ("u", "v")},
    "method": "optimal",
    "gap": 0.01,
    "time_limit": 5.0,
    "bins": {"age": "0,18,65", "visit": "month"},
    "merge_rare": {"*": 10, "town": 5},
    "merge_secrets": {"other": ("a", "b, c")},
    "as_": "values",
    "accept_kept": True,
    "keep_order": True,
    "row_id": "id",
    "table": "people.csv",
    "na": ("unknown",),
    "into": Path("out"),
    "format": "parquet",
    "report": False,
    "ledger": Path("ledger.json"),
}


def test_every_field_has_help_a_group_and_a_valid_example() -> None:
    schema = json_schema()
    for each in FIELDS:
        assert each.help.endswith((".", ")", "…", ",")), each.name
        assert each.group
        if not each.is_flag:
            assert each.option.example is not None, each.name
            jsonschema.validate({each.key: each.option.example}, schema)
            each.option.kind.check(each.name, each.option.example)


def test_a_spec_is_the_same_after_a_file_and_after_a_command_line(tmp_path: Path) -> None:
    spec = ReleaseSpec(**FULL)
    path = tmp_path / "release.toml"
    path.write_text(spec.to_toml(tmp_path), encoding="utf-8")
    again = ReleaseSpec.from_toml(path)
    assert Path(str(again.table)).resolve() == Path("people.csv").resolve()
    same = replace(again, table=spec.table, into=spec.into, ledger=spec.ledger)
    assert plain_values(same) == plain_values(spec)
    jsonschema.validate(tomllib.loads(path.read_text(encoding="utf-8")), json_schema())
    given: dict[str, Any] = {}
    flags = {each.flag: each for each in FIELDS}
    for word in command_words(spec)[2:]:
        flag, equals, text = word.partition("=")
        each = flags[flag.replace("--no-", "--")]
        if equals:
            given.setdefault(each.name, []).append(text)
        else:
            given[each.name] = not flag.startswith("--no-")
    read = ReleaseSpec(**parse_options(given), table=spec.table)
    assert plain_values(read) == plain_values(spec)


def test_values_of_python_are_written_as_text() -> None:
    spec = ReleaseSpec(
        prior="table",
        secret="s",
        publish="x",
        promise=pf.LDP(0.5),
        use=pf.Statistics(),
        bins=[pf.Bins("x", quantiles=4)],
    )
    assert plain_values(spec) == {
        "prior": "table",
        "secret": ["s"],
        "publish": ["x"],
        "promise": "ldp",
        "epsilon": 0.5,
        "use": "statistics",
        "bins": {"x": "quantiles:4"},
    }


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"merge_rare": 1}, "--merge-rare must be at least 2; got 1."),
        ({"epsilon": -1}, "--epsilon must be a finite number at least 0; got -1."),
        ({"gap": 0}, "--gap must be a finite number above 0; got 0."),
        ({"as_": "pictures"}, "--as must be one of outcomes, labels, values; got 'pictures'."),
        ({"seed": "x"}, "--seed must be a whole number; got 'x'."),
        ({"epsilon": 1, "factor": 2}, "--factor and --epsilon say the same thing; both were given. Give one of them."),
        ({"promise": "lp"}, "A promise is one of"),
        ({"population": "195%"}, "--population must be between 0 and 1"),
        ({"prior": "table", "design_epsilon": 1}, "--prior table makes the mechanism from the counts themselves"),
        ({"bins": ["age=0,1", "age=2,3"]}, "--bin must name each column once; 'age' is named twice."),
    ],
)
def test_a_field_outside_its_limits_is_refused_at_birth(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParameterError) as caught:
        ReleaseSpec(**fields)
    assert word_for_command_line(caught.value.sentence).startswith(sentence)


def test_a_sentence_names_a_field_as_its_reader_would_give_it() -> None:
    sentence = f"Use {hint('bins', 'age=0,18,65')}, {hint('merge_rare', 10)} or leave out {hint('sees_secret')}."
    assert word_for_command_line(sentence) == "Use --bin age=0,18,65, --merge-rare 10 or leave out --sees-secret."
    assert word_for_python(sentence) == 'Use bins={"age": "0,18,65"}, merge_rare=10 or leave out sees_secret.'


def test_a_spec_as_a_command_has_an_option_per_field_that_is_not_the_default() -> None:
    spec = ReleaseSpec(table="p.csv", secret="a, b", publish="x", epsilon=1, bins={"x": [0, 9]}, report=False)
    words = ["sanitise", "p.csv", '--secret="a, b"', "--publish=x", "--epsilon=1.0", "--bin=x=0,9", "--no-report"]
    assert command_words(spec) == words


def test_a_field_that_does_not_exist_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text("epsilno = 1\n")
    with pytest.raises(ParameterError, match=r"no field 'epsilno'\. Did you mean 'epsilon'"):
        ReleaseSpec.from_toml(path)
    path.write_text("epsilon = = 1\n")
    with pytest.raises(TableError, match="is no TOML"):
        ReleaseSpec.from_toml(path)
    with pytest.raises(TableError, match="Cannot read spec"):
        ReleaseSpec.from_toml(tmp_path / "none.toml")


def test_a_saved_spec_makes_the_same_release_and_options_change_it(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    saved = tmp_path / "specs" / "release.toml"
    saved.parent.mkdir()
    first = [
        "sanitise",
        "--prior=table",
        str(tmp_path / "people.csv"),
        "-s",
        "ill",
        "-p",
        "town",
        "-e",
        "0.5",
        "--seed",
        "3",
        "--no-report",
    ]
    run(*first, "--into", str(tmp_path / "out"), "--method", "randomised-response", "--save-spec", str(saved))
    assert "[" not in saved.read_text(encoding="utf-8").split("secret")[0]
    run("sanitise", str(saved), "--into", str(tmp_path / "again"))
    tables = [(tmp_path / name / "public" / "sanitised.csv").read_text() for name in ("out", "again")]
    assert tables[0] == tables[1]
    run("sanitise", str(saved), "--into", str(tmp_path / "third"), "--epsilon", "1")
    assert json.loads((tmp_path / "third" / "owner" / "protocol.json").read_text())["promise"]["epsilon"] == 1


def test_a_repeated_release_is_refused_before_anything_is_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.csv"
    PEOPLE.write_csv(path)
    spec = ReleaseSpec(prior="table", secret="ill", publish="town", epsilon=0.5, into=tmp_path / "out")
    pf.sanitise_file(path, spec)

    def solve(*_: object) -> None:
        raise AssertionError("a design was begun")

    monkeypatch.setattr("privacyfunnel.release.sanitise.design_from_counts", solve)
    with pytest.raises(LedgerError, match="These rows were released before"):
        pf.sanitise_file(path, replace(spec, into=tmp_path / "two", epsilon=0.3))
    with pytest.raises(AssertionError, match="a design was begun"):
        pf.sanitise_file(path, replace(spec, into=tmp_path / "two", again=True))


def test_calls_without_a_spec_or_a_secret_say_what_is_missing(tmp_path: Path) -> None:
    file: Any = pf.sanitise_file
    with pytest.raises(ParameterError, match="must be a ReleaseSpec; got a PosixPath"):
        file("people.csv", tmp_path)
    with pytest.raises(ColumnError, match="at least one secret column"):
        pf.sanitise(PEOPLE, publish="town", epsilon=1)


def test_the_common_call_is_short() -> None:
    assert len(signature(pf.sanitise).parameters) <= 10
    assert len(signature(pf.design).parameters) <= 10


@pytest.mark.parametrize("command", ["sanitise", "design"])
def test_help_shows_the_common_options_in_groups_and_help_all_the_rest(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    short = capsys.readouterr().out
    options = [line for line in short.splitlines() if line.startswith("  -")]
    assert len(options) <= 14
    assert "Columns:" in short
    assert main([command, "--help-all"]) == 0
    whole = capsys.readouterr().out
    for each in FIELDS:
        if command in each.option.commands:
            assert each.flag in whole, each.name


def test_schema_and_table_of_options_in_the_documents_are_up_to_date() -> None:
    assert (ROOT / "docs" / "release.schema.json").read_text(encoding="utf-8") == schema_text()
    page = (ROOT / "docs" / "request.md").read_text(encoding="utf-8")
    assert options_table() in page


def test_the_spec_is_cheap_to_import() -> None:
    code = "import sys, privacyfunnel.spec; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "polars", "scipy", "highspy", "typer"} & set(found)


def test_several_secrets_are_one_each_by_itself_or_refused() -> None:
    def spec(*texts: str, **more: Any) -> ReleaseSpec:
        return ReleaseSpec(**parse_options({"secret": list(texts)}), publish="x", **more)

    assert spec("a,b", epsilon=1).promise_value == LIP(1)
    assert spec("a", "b", epsilon=1).promise_value == Each(1.0)
    assert spec("a=0.5", "b=2").promise_value == Each(2.0, "lip", (("a", 0.5),))
    assert spec("a=0.5", "b", epsilon=1, promise="ldp").promise_value == Each(1.0, "ldp", (("a", 0.5),))
    assert ReleaseSpec(secret={"a": 0.5, "b": 1}).promise_value == Each(1.0, "lip", (("a", 0.5),))
    assert ReleaseSpec(secret=[["a", "b"]], epsilon=1).promise_value == LIP(1)
    for texts in (["a"], ["a,b"], ["a", "b"], ["a=0.5", "b"], ['"a,b"=0.5', "c=1"]):
        made = spec(*texts)
        again = ReleaseSpec.from_mapping(tomllib.loads(made.to_toml()))
        words = [word.removeprefix("--secret=") for word in command_words(made) if word.startswith("--secret=")]
        assert again.promise_value == spec(*words).promise_value == replace(made, gap=0.1).promise_value
        assert made.promise_value == again.promise_value
        assert again.secret == made.secret
    for texts, said in (
        (["a", "a"], "'a' was named twice"),
        (["a=1", "a"], "'a' was named twice"),
        (["a,b", "c"], "single columns"),
        (["a=0", "b"], "above 0"),
        (["a=-1", "b"], "above 0"),
    ):
        with pytest.raises(InputError, match=said):
            spec(*texts)
    for more in ({"average": 0.1, "epsilon": 1}, {"robust": 2}, {"promise": "alip:0.5,1"}):
        with pytest.raises(ParameterError, match="secret"):
            _ = spec("a", "b", **more).promise_value
