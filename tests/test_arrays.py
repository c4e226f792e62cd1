"""What is loaded only when it is used."""

import subprocess
import sys

THREADS = """
import sys, threading
from privacyfunnel.arrays import linalg, sparse, special
assert not {"scipy.linalg", "scipy.sparse", "scipy.special"} & set(sys.modules)
found, begin = [], threading.Barrier(6)

def use(module, name):
    begin.wait()
    found.append(getattr(module, name))

asked = [(linalg, "cholesky"), (sparse, "csr_array"), (special, "ndtri")] * 2
threads = [threading.Thread(target=use, args=each) for each in asked]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found))
"""


def test_libraries_are_loaded_when_they_are_used_by_however_many_threads() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("6\n", "")
