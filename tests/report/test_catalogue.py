"""Descriptions for catalogues: the files and columns that there are, what is sensitive, and nothing of the rows."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from privacyfunnel.report.catalogue import CONFORMS, DCAT_CONTEXT
from tests.commands import run


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue")
    rows = {"job": ["clerk", "miner"] * 60, "town": ["u", "v", "u", "w"] * 30, "sex": ["f", "m", "m"] * 40}
    pl.DataFrame(rows).write_csv(folder / "people.csv")
    words = [
        "sanitise",
        "--prior=table",
        "people.csv",
        "-s",
        "job",
        "-p",
        "town",
        "-e",
        0.5,
        "--keep",
        "sex",
        "--purpose",
        "teaching",
        "--contact",
        "data@example.org",
        "--into",
        "out",
    ]
    done = run(*words, "--accept-kept", "--no-report", "--details", "--format", "parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "out/public/croissant.json" in done.stdout
    return folder / "out" / "public"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_croissant_describes_the_files_and_columns_that_there_are(public: Path) -> None:
    told = json.loads((public / "croissant.json").read_text(encoding="utf-8"))
    assert told["conformsTo"] == CONFORMS
    listed = {file["contentUrl"]: file["sha256"] for file in told["distribution"]}
    assert listed == {path.name: sha256(path) for path in public.iterdir() if path.name != "croissant.json"}
    (file,) = [file for file in told["distribution"] if file["contentUrl"] == "sanitised.parquet"]
    assert file["encodingFormat"] == "application/x-parquet"
    (rows,) = told["recordSet"]
    assert [field["name"] for field in rows["field"]] == pl.read_parquet(public / "sanitised.parquet").columns
    assert all(field["source"]["fileObject"]["@id"] == file["@id"] for field in rows["field"])


def test_croissant_says_what_is_sensitive_and_what_is_not_promised_and_holds_nothing_of_the_rows(public: Path) -> None:
    text = (public / "croissant.json").read_text(encoding="utf-8")
    told = json.loads(text)
    sensitive = " ".join(told["rai:personalSensitiveInformation"])
    assert "job: not published; LIP with ε = 0.5" in sensitive
    assert "town: randomised" in sensitive
    assert "sex: published unchanged" in sensitive
    assert any("Not protected: town" in line for line in told["rai:dataLimitations"])
    assert "miner" not in text
    for file in told["distribution"]:
        text = text.replace(file["sha256"], "")
    assert "120" not in text


def test_dcat_has_what_its_application_profile_asks_for_and_every_prefix_it_uses(public: Path) -> None:
    told = json.loads((public / "dcat.jsonld").read_text(encoding="utf-8"))
    assert told["@type"] == "dcat:Dataset"
    assert told["dct:title"]["@value"] == "town, sanitised"
    assert told["dct:description"]["@value"]
    (table,) = told["dcat:distribution"]
    assert table["@type"] == "dcat:Distribution"
    assert table["dcat:accessURL"] == table["dcat:downloadURL"] == {"@id": "sanitised.parquet"}
    assert told["healthdcatap:numberOfRecords"]["@value"] == "120"
    assert "healthdcatap:numberOfUniqueIndividuals" not in told  # nobody said what a person is
    assert told["dpv:hasPurpose"]["dct:description"]["@value"] == "teaching"
    assert told["dcat:contactPoint"]["vcard:fn"] == "data@example.org"
    assert table["spdx:checksum"]["spdx:checksumValue"]["@value"] == sha256(public / "sanitised.parquet")
    assert int(table["dcat:byteSize"]["@value"]) == (public / "sanitised.parquet").stat().st_size

    def keys(content: object) -> set[str]:
        if isinstance(content, list):
            return set().union(*map(keys, content))
        if not isinstance(content, dict):
            return set()
        named = {content["@type"]} if ":" in content.get("@type", "") else set()
        return {key for key in content if key[0] != "@"} | named | set().union(*map(keys, content.values()))

    used = {key.split(":")[0] for key in keys({key: value for key, value in told.items() if key != "@context"})}
    assert used == set(DCAT_CONTEXT)
