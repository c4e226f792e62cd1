"""A query on a database is a table like any other: on a real PostgreSQL, on DuckDB and on SQLite files."""

import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest

from privacyfunnel.errors import OutputError, TableError
from privacyfunnel.release.ledger.ledger_file import NAME
from privacyfunnel.tables.coding.encoding import encode
from privacyfunnel.tables.databases.query import Query
from privacyfunnel.tables.databases.table_target import TableTarget
from privacyfunnel.tables.readers.formats import AUTO_DETECT
from tests.cli.postgres import SPELT, Server, server
from tests.commands import found_by, said, turned_down

PAGE = Path(__file__).parents[2] / "docs" / "databases.md"
ROWS = 600
KINDS = ("postgres", "duckdb", "sqlite")
SELECT = "select * from people"
ASKED = ("--secret", "job", "--publish", "town", "-e", "0.5", "--method", "randomised-response")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with server() as found:
        yield found


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": list(range(ROWS)),
            "job": ["nurse" if i % 7 == 0 else "clerk" if i % 3 == 0 else "none" for i in range(ROWS)],
            "town": ["07" if i * i % 5 == 0 or i % 7 == 0 else "Brünn, 'old'" for i in range(ROWS)],
            "age": [None if i % 50 == 0 else i * 31 % 90 for i in range(ROWS)],
            "fee": [i % 8 / 8 for i in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def places(postgres: Server, people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same rows everywhere."""
    folder = tmp_path_factory.mktemp("databases")
    people.write_csv(folder / "people.csv")
    types = "id int, job text, town text, age int, fee double precision"
    copied = "\n".join("\t".join("\\N" if cell is None else str(cell) for cell in row) for row in people.rows())
    postgres.do(f"create table people ({types})", f"copy people from stdin;\n{copied}\n\\.\n")
    with duckdb.connect(folder / "people.duckdb") as duck:
        duck.execute(f"create table people ({types})")
        duck.execute("insert into people select * from read_csv(?, all_varchar = true)", [str(folder / "people.csv")])
    lite = sqlite3.connect(folder / "people.db")
    lite.execute(f"create table people ({types})")
    lite.executemany("insert into people values (?, ?, ?, ?, ?)", people.rows())
    lite.commit()
    lite.close()
    return {
        "csv": str(folder / "people.csv"),
        "postgres": postgres.address(),
        "duckdb": str(folder / "people.duckdb"),
        "sqlite": str(folder / "people.db"),
    }


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger of what a server gives lies in the current folder."""
    monkeypatch.chdir(tmp_path)


def test_the_commands_of_the_page_run_as_they_are_written(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGHOST", str(postgres.folder))
    monkeypatch.setenv("PGUSER", "steward")
    made = "create table people (job text, town text, age int, year int)"
    rows = [(("cook", "nurse")[i * i % 7 % 2], "klm"[i % 3], i % 50, 2025 + i % 2) for i in range(400)]
    filled = f"insert into people values {str(rows)[1:-1]}"
    postgres.do("create database registry", "\\connect registry", made, filled)
    with duckdb.connect(tmp_path / "people.duckdb") as duck:
        duck.execute(f"{made}; {filled}")
    with closing(sqlite3.connect(tmp_path / "people.sqlite")) as lite:
        lite.executescript(f"{made}; {filled};")
    commands = re.findall(r"^\$ privacyfunnel (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == len(KINDS) + 1
    for command, there in zip(commands[:-1], (200, 400, 400), strict=True):
        words = shlex.split(command)
        found_by(capsys, *words)
        assert pl.read_csv(Path(words[-1]) / "public" / "sanitised.csv").height == there
        Path(NAME).unlink()  # it would refuse a second release of the same rows
    found_by(capsys, *shlex.split(commands[-1]))
    assert fetch("people.duckdb", "select * from people_public").height == 400


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_make_the_same_release_wherever_they_lie(
    kind: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--secret", "job", "--publish", "town,age", "--bin", "age=quantiles:3", "-e", "1", "--seed", "7"]
    more = [*asked, "--keep", "fee", "--accept-kept", "--method", "randomised-response", "--no-report"]
    ours = found_by(
        capsys, "sanitise", "--prior=table", places[kind], "--query", f"{SELECT} order by id;", *more, "--into", "db"
    )
    theirs = found_by(capsys, "sanitise", "--prior=table", places["csv"], *more, "--into", "csv")
    assert ours["rows"] == theirs["rows"] == ROWS
    for name in ("public/sanitised.csv", "owner/protocol.json"):
        assert Path("db", name).read_text() == Path("csv", name).read_text()
    audited = ["audit", "db", places[kind], "--query", SELECT]
    assert "leaks together with the kept column fee" in turned_down(capsys, *audited, "--keep", "fee")
    assert found_by(capsys, "scan", places[kind], "--query", "select job, town from people", "--secret", "job")["rows"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_protocol_is_designed_and_applied_on_queries(
    kind: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = [places[kind], "--query", SELECT]
    found_by(capsys, "design", "--prior=table", *source, *ASKED, "--into", "protocol.json")
    assert said(capsys, "keygen", "--rows", "rows.key")[0] == 0
    drawn = ["--row-id", "id", "--key-file", "rows.key", "--keep", "id", "--accept-kept", "--keep-order"]
    applied = found_by(capsys, "apply", "protocol.json", *source, *drawn, "--into", "db.csv")
    assert applied["on_these_rows"]["above"] is False
    found_by(capsys, "apply", "protocol.json", places["csv"], *drawn, "--into", "csv.csv")
    assert Path("db.csv").read_text() == Path("csv.csv").read_text()


def test_who_asks_and_how_they_prove_it_is_written_and_said_nowhere(
    places: dict[str, str], postgres: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = [places["postgres"], "--query", SELECT]
    words = ["privacyfunnel", "sanitise", "--prior=table", *source, *ASKED, "--into", "out"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", words)
        texts = [*said(capsys, *words[1:])[1:], *said(capsys, *words[1:-2], "--into", "again", "--json")[1:]]
    assert Path("out", "owner", "report.html").exists()
    assert "released before" in texts[-1]
    wrong = postgres.address("ann:xyz%40zy")
    for refused in (
        ["sanitise", "--prior=table", wrong, "--query", SELECT, *ASKED, "--into", "no", "--debug"],
        ["scan", wrong, wrong],
        ["estimate", wrong, wrong],
        ["curve", wrong, "--secret", "a", "--publish", "b", "--epsilons", "1"],
        ["scan", "postgresql://ann:xyz@zy@/postgres", "--query", SELECT, "--secret", "job"],
    ):
        code, *more = said(capsys, *refused)
        assert code == 2
        texts += more
    texts += [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert any(postgres.folder.name in text for text in texts)
    for text in texts:
        assert not [word for word in ("ann:", "ann@", "heim", "xyz", SPELT) if word in text]


def test_the_ledger_knows_the_rows_of_a_query(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sanitise", "--prior=table", places["postgres"], "--no-report", *ASKED]
    assert found_by(capsys, *words, "--query", SELECT, "--into", "one")["ledger"]
    assert Path(NAME).exists()
    other = "select job as task, town as place from people where age is null or age >= 0"
    for query in (f"  {SELECT} ;\n", other):  # the same query, and the same rows by another
        named = [word.replace("job", "task").replace("town", "place") if query == other else word for word in words[3:]]
        told = turned_down(
            capsys, "sanitise", "--prior=table", places["postgres"], *named, "--query", query, "--into", "two"
        )
        assert "released before" in told
    assert not Path("two").exists()
    less = "select * from people where age < 30"
    assert found_by(capsys, *words, "--query", less, "--anyway", "--into", "three")["rows"] < ROWS


BAD = {
    "no such database": ({"name": "nope"}, SELECT, "cannot connect"),
    "a wrong password": ({"user": "ann:xyz"}, SELECT, "cannot connect"),
    "nobody there": ({"more": "/nowhere"}, SELECT, "cannot connect"),
    "no such table": ({}, "select * from poeple", 'relation "poeple" does not exist'),
    "no query at all": ({}, "selec 1", "syntax error"),
    "a name twice": ({}, "select job, town, job from people", "'job' is there twice"),
    "no rows": ({}, f"{SELECT} where id < 0", "must have rows"),
    "a row that fails": ({}, "select job, town, 1 / (id - 300) as age from people", ""),
    "out of time": ({"more": "&options=-c%20statement_timeout%3D100"}, f"{SELECT}, pg_sleep(5)", "broke off"),
    "cut off half-way": (
        {"user": "steward"},
        "select 'nurse' as job, case when g = 90000 then pg_terminate_backend(pg_backend_pid())::text else 'x' end "
        "as town from generate_series(1, 200000) g",
        "broke off",
    ),
    "one that writes": ({"user": "steward"}, "select job, town from people where wipe() is not null", "broke off"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_server_that_does_not_give_all_rows_is_one_sentence_and_nothing_is_written(
    case: str, places: dict[str, str], postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    if case == "one that writes":
        postgres.do("create or replace function wipe() returns int language sql as 'delete from people; select 1'")
    address, query, part = BAD[case]
    bins = ["--publish", "age"] if case == "a row that fails" else []
    words = ["sanitise", "--prior=table", postgres.address(**address), "--query", query, *ASKED, *bins, "--into", "out"]
    assert (part or "broke off") in turned_down(capsys, *words)
    assert list(Path().iterdir()) == []
    (left,) = Query(places["postgres"], "select count(*) as n from people").open(AUTO_DETECT).batches(["n"])
    assert left["n"].item() == ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_queries_that_do_not_go_together_are_refused(
    kind: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--secret", "job", "--publish", "town", "-e", "1", "--into", "out"]
    assert "--query" in turned_down(capsys, "sanitise", "--prior=table", places[kind], *words)
    assert "--query" in turned_down(capsys, "sanitise", "--prior=table", places[kind], "--query", " ; ", *words)
    assert "neither" in turned_down(capsys, "sanitise", "--prior=table", places["csv"], "--query", SELECT, *words)
    assert "Correct the query" in turned_down(
        capsys, "sanitise", "--prior=table", places[kind], "--query", "select * from x", *words
    )
    nothing = turned_down(capsys, "sanitise", "--prior=table", "nothing.duckdb", "--query", SELECT, *words)
    assert "cannot be read" in nothing
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_change_between_count_and_draw_are_refused(
    kind: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "sanitise",
        "--prior=table",
        places[kind],
        *ASKED,
        "--keep",
        "note",
        "--accept-kept",
        "--into",
        "out",
        "--no-report",
    ]
    assert "must not change" in turned_down(capsys, *words, "--query", "select *, random() as note from people")
    assert not Path("out").exists()
    assert found_by(capsys, *words, "--query", "select *, 1 as note from people")["rows"] == ROWS


def test_an_update_between_count_and_draw_is_noticed(places: dict[str, str], postgres: Server) -> None:
    postgres.do("create table moving as select * from people")
    table = Query(places["postgres"], "select * from moving").open(AUTO_DETECT)
    counted = encode(table, secret=["job"], publish=["town"], keep=["age"])
    assert sum(len(chunk.published) for chunk in counted.chunks(["age"])) == ROWS
    postgres.do("update moving set age = 1 where id = 5")
    with pytest.raises(TableError, match="must not change"):
        list(counted.chunks(["age"]))


def test_whatever_type_a_column_has_comes_as_what_the_database_writes(postgres: Server, tmp_path: Path) -> None:
    postgres.do("create type mood as enum ('sad', 'fine')")
    texts = {
        "'fine'::mood": "fine",
        "1.50::numeric": "1.50",
        "'x'::char(3)": "x",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "interval '1 day'": "1 day",
        "array[1, 2]": "{1,2}",
        "date '2024-05-01'": "2024-05-01",
        "true": "true",
        "7::bigint": "7",
    }
    query = ", ".join(f'{value} as "the ""{i}"""' for i, value in enumerate(texts))
    table = Query(postgres.address(), f"select {query}").open(AUTO_DETECT)
    rows = pl.concat(table.batches(table.columns))
    assert rows.cast(pl.String).row(0) == tuple(texts.values())
    with duckdb.connect(tmp_path / "odd.duckdb") as duck:
        duck.execute("create table odd as select 'a'::enum('a', 'b') as e, interval 1 day as i, 170::hugeint as h")
    table = Query(str(tmp_path / "odd.duckdb"), "from odd select *").open(AUTO_DETECT)
    assert pl.concat(table.batches(table.columns)).row(0) == ("a", "1 day", "170")


HOSTILE = {
    "a bracket that closes": "select * from people) as given; copy (select 1) to '{file}'; select * from (select 1",
    "two statements": "select * from people; select * from people",
    "a copy": "copy people to '{file}'",
    "another file": "select * from read_text('{other}')",
    "a view of another file": "select * from hostile",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_duckdb_query_is_one_select_that_reads_its_database_and_nothing_else(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other, path = tmp_path / "written.csv", tmp_path / "other.txt", tmp_path / "people.duckdb"
    other.write_text("of somebody else")
    with duckdb.connect(path) as duck:
        duck.execute("create table people as select 'a' as job, 'b' as town")
        duck.execute(f"create view hostile as select content as job, 'b' as town from read_text('{other}')")
    query = HOSTILE[case].format(file=file, other=other)
    told = turned_down(capsys, "sanitise", "--prior=table", path, "--query", query, *ASKED, "--into", tmp_path / "out")
    assert "one SELECT" in told or "read this database only" in told or "Correct the query" in told
    assert "somebody else" not in told
    assert not file.exists()
    assert not (tmp_path / "out").exists()


def test_a_function_that_writes_beyond_the_transaction_is_refused(
    postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = f"host={postgres.folder} user=steward dbname=postgres"
    postgres.do(
        "create extension dblink",
        "create table written (a int)",
        "create table asked as select 'a' as job, 'b' as town",
        f"create view loud as select a.* from asked a, dblink('{outside}', "
        "'insert into written values (1) returning 1') as t (n int)",
        "create function quiet() returns int language plpgsql as $$ begin perform dblink_exec("
        f"'{outside}', 'insert into written values (1)'); return 1; end $$",
    )
    for query in ("select * from loud", "select * from asked where quiet() = 1"):
        words = [
            "sanitise",
            "--prior=table",
            postgres.address(user="steward"),
            "--query",
            query,
            *ASKED,
            "--into",
            "out",
        ]
        assert "must not call functions that can write" in turned_down(capsys, *words)
    (rows,) = (
        Query(postgres.address(user="steward"), "select count(*) as n from written").open(AUTO_DETECT).batches(["n"])
    )
    assert rows["n"].item() == 0


def fetch(where: str, query: str) -> pl.DataFrame:
    table = Query(where, query).open(AUTO_DETECT)
    return pl.concat(table.batches(table.columns))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_back_into_a_table_of_the_database_and_only_what_was_written_here_is_replaced(
    kind: str, places: dict[str, str], postgres: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = postgres.address(user="steward") if kind == "postgres" else places[kind]
    job = ["--prior=table", where, "--query", SELECT, *ASKED, "--seed", "1", "--no-report", "--keep", "fee"]
    goal = f"{where}#people_public"
    first = found_by(capsys, "sanitise", *job, "--accept-kept", "--into", "first", "--into-table", goal)
    rows = fetch(where, "select * from people_public")
    file = pl.read_csv("first/public/sanitised.csv", schema=rows.schema)
    assert rows.equals(file), "the same rows in the same order"
    assert fetch(where, "select * from people_public_notice").item() == "Rows drawn by privacyfunnel."
    assert first["into_table"].endswith("#people_public")
    assert SPELT not in str(first)
    words = ["apply", "first/owner/protocol.json", where, "--query", SELECT, "--again", "--accept-drift"]
    assert "exists already" in turned_down(capsys, *words, "--into", "rows.csv", "--into-table", goal)
    found_by(capsys, *words, "--into", "rows.csv", "--into-table", goal, "--force")
    assert fetch(where, "select * from people_public").columns == ["town"]
    assert "nothing is promised" in fetch(where, "select * from people_public_notice").item()
    told = turned_down(capsys, *words, "--into", "other.csv", "--into-table", f"{where}#people", "--force")
    assert "This program did not write it" in told
    assert fetch(where, "select id from people").height == ROWS


def test_rows_that_a_database_does_not_take_are_published_nowhere(
    places: dict[str, str], postgres: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = ["sanitise", "--prior=table", places["csv"], *ASKED, "--no-report", "--ledger", "ledger.json"]
    reader = f"{postgres.address()}#mine"  # of a role that may only read
    told = turned_down(capsys, *job, "--into", "out", "--into-table", reader)
    assert "permission denied" in told
    assert SPELT not in told
    assert not Path("out").exists()
    assert not Path("ledger.json").exists()
    told = turned_down(capsys, *job, "--into", "out", "--into-table", "people.csv")
    assert "with # between" in told


def test_rows_go_into_a_table_all_at_once(postgres: Server, places: dict[str, str]) -> None:
    target = TableTarget.parse(f"{postgres.address(user='steward')}#slowly")

    def batches() -> Iterator[pl.DataFrame]:
        for i in range(3):
            yield pl.DataFrame({"a": [i]})
            with pytest.raises(TableError):  # nobody sees it yet
                fetch(target.where, "select * from slowly")
        if not complete:
            raise OSError("the disk is full")

    complete = False
    with pytest.raises(OutputError, match="took no row"), target.write(force=False) as load:
        load(batches(), "")
    target.check(force=False)
    complete = True
    with target.write(force=False) as load:
        load(batches(), "")
    assert fetch(target.where, "select * from slowly")["a"].to_list() == [0, 1, 2]


def test_any_table_becomes_a_folder_of_parquet_parts_of_equal_size(
    places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    found_by(capsys, "design", "--prior=table", places["csv"], *ASKED, "--into", "protocol.json")
    rows = ["apply", "protocol.json", places["duckdb"], "--query", SELECT]
    found_by(capsys, *rows, "--into", "parts", "--parts", "7")
    sizes = [pl.read_parquet(path).height for path in sorted(Path("parts").glob("part-*.parquet"))]
    assert sizes == [ROWS * i // 7 - ROWS * (i - 1) // 7 for i in range(1, 8)]
    assert "random order" in turned_down(capsys, *rows, "--into", "more", "--parts", "7", "--keep-order", "--again")
