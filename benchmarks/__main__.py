"""Run every benchmark, or those named: `python -m benchmarks [NAME …]`. Each prints its own table."""

import importlib
import pkgutil
import sys
import time

import benchmarks


def main() -> None:
    """Run the `main` of each module in this folder."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    asked = sys.argv[1:] or names
    unknown = [name for name in asked if name not in names]
    if unknown:
        sys.exit(f"There is no benchmark '{unknown[0]}'. There are: {', '.join(names)}.")
    for name in asked:
        start = time.perf_counter()
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
        print(f"   ({time.perf_counter() - start:.1f} s)\n", flush=True)


if __name__ == "__main__":
    main()
