"""Symbolic links in a folder: those inside are followed once, those that lead out only where that was asked for."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pyrag.retrieval.index import update_index

from .updating import content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Notes with links of all kinds, beside a folder of secrets."""
    for name, text in (("notes/a.txt", "apple"), ("secret/key.txt", "password"), ("notes/sub/b.txt", "pear")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "secret" / "z.zip", "w") as archive:
        archive.writestr("in.txt", "hidden")
    notes = tmp_path / "notes"
    (notes / "etc").symlink_to(tmp_path / "secret")
    (notes / "key.txt").symlink_to("../secret/key.txt")
    (notes / "z.zip").symlink_to(tmp_path / "secret" / "z.zip")
    (notes / "sub" / "up").symlink_to("..")
    (notes / "sub" / "far").symlink_to("../etc")
    (notes / "within").symlink_to(notes / "sub")
    (notes / "binary").symlink_to("/bin/sh")
    return notes


def texts(index: Path) -> set[str]:
    return {one.text for one in content(index)}


def test_links_out_of_the_folder_are_left_out_and_named(folder: Path, tmp_path: Path) -> None:
    built = update_index([folder], tmp_path / "ix")
    assert texts(tmp_path / "ix") == {"apple", "pear"}
    names = ["etc", "key.txt", "sub/far", "within/far", "z.zip"]
    assert sorted(name for name, _ in built.problems) == [str(folder / name) for name in names]
    assert built.problems[0][1].endswith(
        f"leads out of the folder, to {tmp_path}/secret: name that too, or add --follow-links"
    )


def test_links_out_of_the_folder_are_followed_where_asked_for(folder: Path, tmp_path: Path) -> None:
    assert update_index([folder], tmp_path / "ix", follow_links=True).problems == ()
    assert texts(tmp_path / "ix") == {"apple", "pear", "password", "hidden"}
    update_index([folder], tmp_path / "ix")
    assert texts(tmp_path / "ix") == {"apple", "pear"}


def test_a_link_to_another_named_folder_is_no_way_out(folder: Path, tmp_path: Path) -> None:
    assert update_index([folder, tmp_path / "secret"], tmp_path / "ix").problems == ()
    assert texts(tmp_path / "ix") == {"apple", "pear", "password", "hidden"}


def test_a_named_link_is_followed(folder: Path, tmp_path: Path) -> None:
    assert update_index([folder / "etc"], tmp_path / "ix").problems == ()
    assert texts(tmp_path / "ix") == {"password", "hidden"}


def test_a_pattern_does_not_lead_out(folder: Path, tmp_path: Path) -> None:
    built = update_index([f"{folder}/**/*.txt"], tmp_path / "ix")
    assert texts(tmp_path / "ix") == {"apple", "pear"}
    assert str(folder / "key.txt") in dict(built.problems)
    update_index([f"{folder}/*/*.txt"], tmp_path / "iy")
    assert texts(tmp_path / "iy") == {"pear"}


def test_a_folder_whose_name_only_begins_alike_is_outside(tmp_path: Path) -> None:
    for name in ("notes", "notes-private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(name)
    (tmp_path / "notes" / "link").symlink_to(tmp_path / "notes-private")
    assert len(update_index([tmp_path / "notes"], tmp_path / "ix").problems) == 1
    assert texts(tmp_path / "ix") == {"notes"}
