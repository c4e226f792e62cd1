"""What is said when a database does not do what it is asked: a sentence, and nothing of what it answered.

Its own words are passed on only where they are about names and grammar of the query: others may quote rows.
"""

from privacyfunnel.errors import TableError


def missing_package_error(where: str, library: str, extra: str) -> TableError:
    """The package is missing that reads this kind of database."""
    return TableError(
        f"{where} needs the package {library}, which is not installed. Install it with pip install "
        f"'privacyfunnel[{extra}]', or save the rows as CSV or Parquet."
    )


def connection_error(where: str) -> TableError:
    """Nobody answers, or not to us."""
    return TableError(
        f"the database {where} must let us in; it refused or did not answer in time. Check that it runs, its name, and "
        "who asks: user and password may stand in PGUSER and PGPASSWORD, or in ~/.pgpass."
    )


def query_error(where: str, message: str) -> TableError:
    """The query is none there."""
    said = " ".join(message.split())
    return TableError(f"the query must be one that {where} can answer; it says: {said}. Mend the query.")


def read_error(where: str) -> TableError:
    """It stopped while it answered."""
    return TableError(
        f"the database {where} must give all rows; it broke off: the query ran out of time, was ended, failed on a "
        "row, or the connection was lost. Try the query there, and run again."
    )
