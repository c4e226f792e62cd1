"""A real PostgreSQL for tests: on a socket in a folder of its own, gone when they are done."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSWORD = "g%3Aheim%40x"  # as it stands in an address
SPELT = "g:heim@x"


@dataclass(frozen=True)
class Server:
    """A server that listens on a socket in this folder."""

    folder: Path

    def address(self, user: str = f"ann:{PASSWORD}", name: str = "postgres", more: str = "") -> str:
        return f"postgresql://{user}@/{name}?host={self.folder}{more}"

    def do(self, *statements: str) -> None:
        """Statements of its owner, each by itself."""
        who = ["-h", str(self.folder), "-U", "steward", "-d", "postgres"]
        psql = [_program("psql"), "-q", *who, "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(psql, input=";\n".join(statements) + ";\n", text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


@contextmanager
def server() -> Iterator[Server]:
    """It runs under a user that may run it: it refuses root."""
    folder = Path(tempfile.mkdtemp(prefix="pf-pg-"))
    who: dict[str, Any] = {}
    if os.getuid() == 0:
        someone = pwd.getpwnam("postgres")
        os.chown(folder, someone.pw_uid, someone.pw_gid)
        who = {"user": someone.pw_uid, "group": someone.pw_gid, "extra_groups": []}
    quiet: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    data, control = folder / "data", _program("pg_ctl")

    def do(*words: str | Path) -> None:
        subprocess.run(words, check=True, **who, **quiet)

    try:
        subprocess.run(
            [_program("initdb"), "-D", data, "-U", "steward", "-A", "trust", "-N"], check=True, **who, **quiet
        )
        (data / "pg_hba.conf").write_text("local all steward trust\nlocal all all scram-sha-256\n", encoding="utf-8")
        asked = f"-k {folder} -c listen_addresses='' -c fsync=off"
        subprocess.run(
            [control, "-D", data, "-w", "-o", asked, "-l", folder / "log", "start"], check=True, **who, **quiet
        )
        try:
            found = Server(folder)
            found.do(f"create role ann login password '{SPELT}'", "grant pg_read_all_data to ann")
            yield found
        finally:
            do(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _program(name: str) -> str:
    """Where Debian puts the programs of the newest version, or wherever they are found."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    where = str(found[-1]) if found else shutil.which(name)
    assert where, f"{name} is not here: make test installs PostgreSQL"
    return where
