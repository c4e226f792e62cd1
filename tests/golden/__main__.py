"""`python -m tests.golden`: say what differs from the stored records, or store the cases anew with --refresh.

Protocol files are never written again, as earlier states of the program wrote them; a new one gets its record.
"""

import sys
from collections.abc import Sequence

from tests.golden.cases import CASES
from tests.golden.compare import differences
from tests.golden.expected import PROTOCOLS, read_records, record_named_case, record_protocol, write_records


def run_golden(words: Sequence[str]) -> int:
    """Run the cases whose names begin with one of the words, or all; the exit code."""
    begins = tuple(word for word in words if word != "--refresh") or ("",)
    stored = read_records()
    cases, protocols = dict(stored["cases"]), dict(stored["protocols"])
    failures = 0
    for name in (case.name for case in CASES if case.name.startswith(begins)):
        found = record_named_case(name)
        for sentence in differences(cases.get(name, {}), found):
            print(f"{name}: {sentence}")
            failures += 1
        cases[name] = found
    for name in PROTOCOLS.keys() - protocols.keys():
        protocols[name] = record_protocol(name)
    if "--refresh" not in words:
        return 1 if failures else 0
    write_records(
        {
            "cases": {case.name: cases[case.name] for case in CASES if case.name in cases},
            "protocols": {name: protocols[name] for name in PROTOCOLS},
        }
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_golden(sys.argv[1:]))
