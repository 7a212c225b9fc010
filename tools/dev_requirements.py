"""Requirements of the `dev` group of pyproject.toml, one per line: `pip install --group` needs a newer pip."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
print("\n".join(project["dependency-groups"]["dev"]))
