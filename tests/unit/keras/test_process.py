"""The id of this process, also of a fork."""

from __future__ import annotations

import os
import subprocess
import sys

from tb_pastnet.keras.process import pid

FORKS = """
import os
from tb_pastnet.keras.process import pid
parent = pid()
child = os.fork()
if child == 0:
    os._exit(0 if pid() == os.getpid() != parent else 1)
assert pid() == os.getpid() == parent
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_it_is_that_of_the_system():
    assert pid() == os.getpid()


def test_a_fork_has_its_own():
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
