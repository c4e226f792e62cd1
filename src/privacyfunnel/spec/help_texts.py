"""Help texts of the fields of a spec, which the command line, release.toml and the documentation show."""

from collections.abc import Mapping

HELP: Mapping[str, str] = {
    "secret": "The secret column; several by comma (a name with a comma in quotes) or repetition.",
    "publish": "A column to publish, randomised; several likewise.",
    "keep": "A column to publish unchanged, judged together with what is published; several likewise.",
    "epsilon": "Largest change of a belief about the secret: a factor of e^ε. At ε = 1 a belief of 30 % may become "
    "74.3 %, at 0.5 49.5 %, at 0.1 33.2 % (docs/choosing.md). For apply: on these rows, if not the protocol's.",
    "factor": "The same as a factor: 2 means ε = ln 2, so that no belief more than doubles.",
    "promise": "lip: against everybody; ldp: between any two secrets; srlip: lip, also against those who know "
    "published values.",
    "population": "Also keep the promise, with this confidence, for the population that the rows are a random sample "
    "of; auto: with 95 % where possible; none: for these rows only.",
    "average": "Also bound the average leakage I(S;Y), in nats.",
    "average_only": "Promise the average leakage alone; the ε that results is stated.",
    "sees_secret": "Let the mechanism read the secret as well: it keeps more and promises less.",
    "use": "What the table is best for: information, values (the right value most often), distance (or "
    "distance:squared, distance:costs.csv), statistics (all shares, or statistics:COLUMN,…, "
    "statistics:queries.csv, statistics:weights.csv), balanced (statistics with 99 % of the information, "
    "or balanced:0.97). Default: statistics where possible.",
    "ordered": "A column with ordinal values: size=S,M,L. Numbers and bins need none.",
    "method": "auto, optimal, forced-response, chain, product, randomised-response, unary-encoding or conditional-"
    "reporting. Default: auto, the optimum, or with too many combinations a forced response, or a chain for "
    "information.",
    "chain_order": "For chain: the columns in the order in which they are published.",
    "budgets": "For product: sound, paper, or an ε per column (0.2,0.3). Default: searched.",
    "gap": "Stop when the proof is within this many nats of the optimum.",
    "time_limit": "Stop after so many seconds with the best mechanism so far and its bound. Default: 60.",
    "bins": "Coarser values: numbers age=0,18,65, age=quantiles:8, price=width:1000, age=top:85 or "
    "age=bottom:18,top:85; dates visit=year (quarter, month, week, weekday; month:dmy where day and month"
    " could be swapped); codes icd=prefix:3; any icd=map:groups.csv (value;group;…; map:groups.csv:2 for "
    "a coarser level); or age=values.",
    "merge_rare": "Publish values with fewer rows than this as 'other', and merge such bins with their neighbours: 10 "
    "for all published columns, zip=10 for one.",
    "merge_secrets": "Treat values of the secret as one: 'a,b,c=other'. The promise then excludes what separates them.",
    "as_": "outcomes: the most likely value, a code, and a codebook; labels: groups of values as text; values: "
    "original categories.",
    "sets": "Write sets of values as one column, or as 0/1 indicators.",
    "accept_kept": "Publish kept columns, such as an id, without judging them: the promise then does not cover them.",
    "keep_order": "Publish the rows in the table's order, which may reveal the secret.",
    "with_shares": "Publish the exact shares of each published column in protocol.json as well.",
    "row_id": "A column that identifies rows: the draw of a row follows from it, not from the row's position.",
    "key_file": "With a row id: the owner's key (keygen --rows), by which unchanged people get the same draw every "
    "time.",
    "seed": "For tests only: a release from a seed is not for publication.",
    "unknown": "Rows with values that the mechanism does not know: error, blur (as if they had a random value) or "
    "drop.",
    "accept_drift": "Publish rows on which more leaks than was promised; a notice beside them says so.",
    "design_epsilon": "Make the mechanism from counts with noise of this ε.",
    "domain": "The file of public labels and bins, as scan --domain drafts it.",
    "design_noise": "The source of noise: own, or opendp (an extra package).",
    "table": "The table, where no other is named: a file, or with a query a database.",
    "query": "The rows of a database: select … from …",
    "counts": "The table has a row per combination; this column counts the rows of each.",
    "delimiter": "The field separator, if it is not detected.",
    "encoding": "The text encoding, if it is not detected.",
    "decimal": "The decimal mark, if it is not detected: . or ,",
    "na": "A text for a missing number or date, besides NA, N/A, NaN, null, None, nil, . - -- ? and nothing; "
    "several by comma or repetition.",
    "sheet": "The sheet of an .xlsx file. Default: the first.",
    "person": "The column that identifies persons: each counts as one row if their rows agree.",
    "person_row": "Which row of a person counts where they differ: first or last.",
    "into": "Where the output goes: the folder of a release, the file of a protocol or of applied rows.",
    "format": "The format of the sanitised table. Default: that of the table.",
    "excel_safe": "Put an apostrophe before text that begins like a formula.",
    "report": "Write report.html, for the owner only.",
    "curve": "Also solve the trade-off curve of the report, which takes longer than the release.",
    "public_report": "Write public-report.html, a page for everybody.",
    "croissant": "Write croissant.json, which describes the release for catalogues.",
    "sign": "Sign the table and its protocol with this private key (keygen).",
    "ledger": "The owner's record of releases. Default: a file beside the table.",
    "again": "Release rows again that were released before; the leakage of both counts.",
    "force": "Overwrite existing output.",
}
