"""`python -m tb_pastnet`: checks, reports and exports logs."""

from __future__ import annotations

import sys

from tb_pastnet.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout, sys.stderr))
