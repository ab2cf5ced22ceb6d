"""Makes the links of README.md absolute in the package's description; pyproject.toml says the rest.

In the repository they are relative, and work in any clone; an index of packages has no files.
"""

import re
from pathlib import Path

from setuptools import setup

REPOSITORY = "tb-pastnet/tb_pastnet"
PAGES = f"https://github.com/{REPOSITORY}/blob/main/"
PICTURES = f"https://raw.githubusercontent.com/{REPOSITORY}/main/"

readme = (Path(__file__).parent / "README.md").read_text("utf-8")
readme = re.sub(r"(\]\()(?![a-z]+:|#)", rf"\1{PAGES}", readme)
readme = re.sub(r'((?:src|srcset)=")(?![a-z]+:)', rf"\1{PICTURES}", readme)
setup(long_description=readme, long_description_content_type="text/markdown")
