"""How the program was called, so that commands it suggests can be typed as they stand."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

NAME = "privacyfunnel"


def program_name() -> str:
    """The words before a command: `privacyfunnel`, or a path or module where that name alone would not be found."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        python = _name_if_found(Path(sys.executable).name, Path(sys.executable)) or _relative_path(Path(sys.executable))
        return f"{shlex.quote(python)} -m {NAME}"
    if not typed.is_file():  # called from within Python
        return NAME
    return shlex.quote(_name_if_found(NAME, typed) or _relative_path(typed))


def _name_if_found(name: str, meant: Path) -> str | None:
    """The name, if a shell that is given it runs the very file that is meant, not one that links to the same."""
    there = shutil.which(name)
    same = there is not None and Path(there).name == meant.name and Path(there).parent.samefile(meant.parent)
    return name if same else None


def _relative_path(path: Path) -> str:
    """The path from here, if it lies below; links are left as they are, for a virtual environment is one."""
    here, whole = Path.cwd(), path.absolute()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
