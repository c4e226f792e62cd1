"""`python -m fuzz [TARGET …] --seconds N`: every target in turn, each in a process of its own, at low priority."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MEGABYTES = 2048  # a target that needs more is a crash
SLOW = 20  # seconds for one input: more is a crash


def run(name: str, seconds: int) -> int:
    """Fuzz one target for so many seconds; what is found is kept beside the corpus, what crashes in `crashes/`."""
    found, crashes = HERE / "found" / name, HERE / "crashes" / name
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    print(f"fuzzing {name} for {seconds} s", flush=True)
    limits = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEGABYTES}", f"-timeout={SLOW}", "-print_final_stats=1"]
    command = [sys.executable, "-m", "fuzz", "--only", name, *limits, f"-artifact_prefix={crashes}/", str(found)]
    return subprocess.run([*command, str(HERE / "corpus" / name)], check=False).returncode


def only(name: str, arguments: list[str]) -> None:
    """This process becomes the fuzzer of one target."""
    import atheris

    with atheris.instrument_imports(include=["privacyfunnel"]):
        from fuzz.targets import TARGETS
    from fuzz.mutation import mutated

    def whole_json(data: bytes, most: int, seed: int) -> bytes:
        return mutated(data, seed)[:most] if seed % 8 else bytes(atheris.Mutate(data, most))

    how = {"custom_mutator": whole_json} if name == "protocol" else {}
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name], **how)
    atheris.Fuzz()


def main() -> int:
    """Fuzz the targets that were named, or all; 1 if one crashed."""
    if sys.argv[1:2] == ["--only"]:
        only(sys.argv[2], sys.argv[3:])
        return 0
    words = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    names = sorted(path.name for path in (HERE / "corpus").iterdir())
    words.add_argument("targets", nargs="*", help=", ".join(names))
    words.add_argument("--seconds", type=int, default=60, help="for each target")
    asked = words.parse_args()
    unknown = [name for name in asked.targets if name not in names]
    if unknown:
        words.error(f"targets are {', '.join(names)}; not '{unknown[0]}'.")
    os.nice(10)
    failed = [run(name, asked.seconds) != 0 for name in asked.targets or names]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
