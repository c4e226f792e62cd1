"""Run every benchmark, or those named: `python -m benchmarks [NAME …]`. Each prints its own table.

Options that follow the name of a single one are its own: `python -m benchmarks rivals --page`.

Each runs in a process of its own, so that what one holds in memory is not counted for the next. Without names those
are left out that take hours, need what is not here or are part of another; `--list` says which.
"""

import pkgutil
import subprocess
import sys
import time

import benchmarks

# What must be asked for by name, and why.
BY_NAME = {
    "ablation": "takes hours",
    "cluster": "needs Java",
    "defaults": "needs tables to be downloaded",
    "limits": "part of size",
    "one_column": "needs tables to be downloaded",
    "population": "takes hours",
    "rivals": "installs other programs, takes an hour",
    "robust": "needs tables to be downloaded",
    "srlip": "part of size",
}
FIRST = "size"  # what is to be reached; the others follow by their names


def main(words: list[str]) -> None:
    """Run the benchmarks of this folder, one after the other."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if _is_one(module))
    names = [FIRST, *(name for name in names if name != FIRST)]
    if words == ["--list"]:
        print("\n".join(f"{name:<12}{BY_NAME.get(name, '')}".rstrip() for name in names))
        return
    first = next((place for place, word in enumerate(words) if word.startswith("--")), len(words))
    words, options = words[:first], words[first:]
    if options and len(words) != 1:
        sys.exit(f"Options follow the name of one benchmark; {len(words)} are named before {options[0]}.")
    asked = words or [name for name in names if name not in BY_NAME]
    unknown = [name for name in asked if name not in names]
    if unknown:
        sys.exit(f"There is no benchmark '{unknown[0]}'. There are: {', '.join(names)}.")
    failed = []
    for number, name in enumerate(asked, 1):
        start = time.perf_counter()
        print(f"== {name} ({number} of {len(asked)})", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=False).returncode:
            failed.append(name)
        print(f"   ({time.perf_counter() - start:.1f} s)\n", flush=True)
    if failed:
        sys.exit(f"These ended with an error: {', '.join(failed)}.")


def _is_one(module: pkgutil.ModuleInfo) -> bool:
    """A folder holds what several share."""
    return module.name != "__main__" and not module.ispkg


if __name__ == "__main__":
    main(sys.argv[1:])
