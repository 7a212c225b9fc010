"""Check the built wheel and sdist: `python tools/check_distributions.py dist [vX.Y.Z]`.

The wheel must contain all committed files of its packages, type information and the schema of traces. The files must be
small enough to upload. A release's tag must match the version, which must have a dated section in CHANGELOG.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAXIMUM_MB = 60  # PyPI takes 100
NEEDED = ("pyrag/trace/schema.json", "pyrag_rl/configs/sft.yaml", "pyrag_runtime.py")


def main(folder: str, tag: str = "") -> int:
    """Print what is wrong with the distributions in a folder; return 1 if there are problems, else 0.

    Args:
        folder: Folder with one wheel and one sdist.
        tag: Tag of the release; empty if there is none.
    """
    wrong = [*_distributions(Path(folder)), *_release(tag)]
    print("\n".join(wrong) or "wheel and sdist are complete")
    return bool(wrong)


def _distributions(folder: Path) -> Iterator[str]:
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        yield f"{folder} holds {len(wheels)} wheels and {len(sdists)} sdists instead of one of each"
        return
    for file in (*wheels, *sdists):
        if (size := file.stat().st_size / 1e6) > MAXIMUM_MB:
            yield f"{file.name} has {size:.0f} MB, more than {MAXIMUM_MB}"
    with zipfile.ZipFile(wheels[0]) as wheel:
        held = set(wheel.namelist())
    packages = packages_of(ROOT / "pyproject.toml")
    needed = {*NEEDED, *(f"{package.name}/py.typed" for package in packages), *_committed(packages)}
    yield from (f"the wheel lacks {name}" for name in sorted(needed - held))
    with tarfile.open(sdists[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    yield from (f"the sdist lacks {name}" for name in ("LICENSE", "README.md", "pyproject.toml") if name not in names)


def packages_of(project: Path) -> list[Path]:
    """Return the folders of the packages in a project's wheel, relative to the project."""
    settings = tomllib.loads(project.read_text(encoding="utf-8"))
    return [Path(name) for name in settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]


def _committed(packages: list[Path]) -> Iterator[str]:
    """Yield the committed files of packages, by their path in the wheel."""
    lines = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for package in packages:
        for line in lines:
            if Path(line).is_relative_to(package):
                yield (package.name / Path(line).relative_to(package)).as_posix()


def _release(tag: str) -> Iterator[str]:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag and tag != f"v{version}":
        yield f"the tag {tag} is not the version {version} of pyproject.toml"
    if tag and not is_released(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        yield f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD': write the date of the release"


def is_released(version: str, changelog: str) -> bool:
    """Return whether a changelog has a dated section for a version."""
    return re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.M) is not None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
