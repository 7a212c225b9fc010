"""Script that prints the requirements in pyproject.toml's `dev` group (`pip install --group` needs a newer pip)."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
print("\n".join(project["dependency-groups"]["dev"]))
