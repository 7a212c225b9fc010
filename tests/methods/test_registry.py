"""Methods that other packages add by entry points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

from pyrag._io import plugins
from pyrag.errors import ConfigError
from pyrag.methods import registry
from pyrag.settings import Settings

ENTRY_POINTS = """[pyrag.methods]
house-method = house_methods.good:METHOD
house-broken = house_methods.broken
house-empty = house_methods.empty
pyrag = house_methods.good:METHOD
opera = house_methods.good:METHOD
"""
METADATA = "Metadata-Version: 2.1\nName: house-methods\nVersion: 1.0\n"


@pytest.fixture(autouse=True)
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder as an installer leaves it."""
    about = tmp_path / "house_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    package = tmp_path / "house_methods"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "good.py").write_text(
        "from pyrag.extend import Method\n\n\nasync def answer(episode, settings):\n    return 7\n\n\n"
        "METHOD = Method(name='house-method', answer=answer, variants=('short', 'long'),\n"
        "                open_shared=lambda settings: settings.topk)\n"
    )
    (package / "broken.py").write_text("import no_such_module_anywhere\n")
    (package / "empty.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.forget()
    yield
    monkeypatch.undo()
    plugins.forget()


def test_another_packages_method_is_found() -> None:
    assert "house-method" in registry.method_names()
    assert registry.get_method("house-method:long").answer.__module__ == "house_methods.good"
    assert registry.open_shared(Settings(method="house-method", topk=3)) == 3
    with pytest.raises(ConfigError, match="did you mean 'long'"):
        registry.get_method("house-method:lon")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("house-broken", "house-broken of house-methods cannot be loaded .ModuleNotFoundError"),
        ("house-empty", "house-empty of house-methods is not a Method"),
        ("house-methot", "did you mean 'house-method'"),
    ],
)
def test_a_broken_method_is_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        registry.get_method(name)


def test_names_of_pyrag_stay_its_own() -> None:
    for name in ("pyrag", "opera"):
        assert registry.get_method(name).answer.__module__ == f"pyrag.methods.{name}.method"


def test_each_method_carries_its_registered_name() -> None:
    own = [name for name in registry.method_names() if not name.startswith("house-")]
    assert [registry.get_method(name).name for name in own] == own


def test_a_missing_registration_asks_for_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: EntryPoints())
    plugins.forget()
    with pytest.raises(ConfigError, match=r"method opera is not registered, .* run pip install"):
        registry.get_method("opera")


def test_unknown_methods_share_nothing() -> None:
    assert registry.open_shared(Settings(method="no-such-method")) is None
