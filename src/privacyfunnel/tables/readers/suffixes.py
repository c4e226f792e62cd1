"""Which ends of a file's name stand for which format."""

DELIMITED: dict[str, str | None] = {
    ".csv": None,
    ".csv.gz": None,
    ".csv.zst": None,
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".tsv.zst": "\t",
}  # with the delimiter that is meant
PARQUET = (".parquet",)
ARROW = (".arrow", ".feather", ".ipc")
SUFFIXES = (*DELIMITED, *PARQUET, *ARROW)
FOREIGN = (".xlsx", ".dta", ".sav", ".zsav", ".sas7bdat", ".jsonl", ".ndjson")  # read, and written as CSV

# What to do about files whose names end otherwise.
FORMAT_HINTS = {
    ".xls": "Open it and save it as .xlsx or CSV.",
    ".ods": "Open it and save it as .xlsx or CSV.",
    ".txt": "If it is text with a delimiter, give its name the end .csv.",
    ".dat": "If it is text with a delimiter, give its name the end .csv.",
    ".tab": "If it is text with tabs, give its name the end .tsv.",
    ".json": "Write one object on each line, and give its name the end .jsonl.",
    ".rds": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".rdata": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".rda": "In R, write it with write.csv(…, row.names = FALSE) or arrow::write_parquet(…).",
    ".por": "In SPSS, save it as .sav.",
    ".xpt": "In SAS, save it as .sas7bdat, or export it as CSV.",
    ".zip": "Unpack it first.",
    ".csv.zip": "Unpack it first.",
    ".pkl": "In Python, write it with to_parquet(…).",
}
