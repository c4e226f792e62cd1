"""Golden outputs: what every command found on small tables, so that changes of names and of structure keep results.

tables     the tables, made from whole numbers
cases      the commands that are run on them, one after the other
record     from what a command prints and writes to a flat record of quantities; the words of today's JSON stand here
compare    what may differ between two records
expected   the stored records (expected.json), and how they are made now
protocols/ files of format version 1 that must stay readable, made from people.csv: `v1-first` to `v1-fifth` by early
           states of the program (before outcomes, substitutes and steps with `otherwise`), the others by release 0.1

A change that is meant to change results writes the records again, and its author reads the difference:

    python -m tests.golden --refresh            all of them
    python -m tests.golden --refresh solve      those whose names begin so
    python -m tests.golden                      say what differs, and write nothing
"""
