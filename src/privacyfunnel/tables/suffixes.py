"""Which ends of a file's name stand for which format."""

DELIMITED: dict[str, str | None] = {
    ".csv": None,
    ".csv.gz": None,
    ".tsv": "\t",
    ".tsv.gz": "\t",
}  # with the delimiter that is meant
PARQUET = (".parquet",)
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*DELIMITED, *PARQUET, *ARROW)
