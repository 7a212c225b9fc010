"""WordPiece against the package `tokenizers`: the same ids, places and segments, whatever the text."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import pyrag
from pyrag.errors import ConfigError
from pyrag.networks.wordpiece import WordPiece, open_tokenizer

FILE = Path(pyrag.__file__).parent / "embedded" / "model" / "tokenizer.json"
OURS = open_tokenizer(FILE)
THEIRS = tokenizers.Tokenizer.from_file(str(FILE))
ALPHABETS = [
    "abcdefghij ABC.,!?-'",
    "éÉüÖßŁøΣςİıǅﬁ½²ªﷺ",
    "\t\n\r\x0b\x00\x01\x1f\x7f\x85\xa0\u200b\u200d\u2003\u2028\ufeff\ufffd",
    "中文漢字ひらがなカタカナ한국어각",
    "\u0301\u0308\u0327\u05b0\u064b",
    "‘’“”—–…¿¡«»、。$€+<=>^`|~°©",
    "😀🇩🇪👩‍👩‍👧नमस्ते สวัสดี שלום سلام Привет",
]
ODD_WORDS = ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "##a", "[ CLS]", "a" * 100, "a" * 101, "é" * 101]


def parts(encoding: Any) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    return encoding.ids, encoding.offsets, encoding.type_ids


def made_up(seed: int) -> str:
    pick = random.Random(seed)
    return "".join(
        pick.choice(ODD_WORDS) if pick.random() < 0.02 else pick.choice(pick.choice(ALPHABETS))
        for _ in range(pick.randint(0, 60))
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_texts_give_the_same_tokens(seed: int) -> None:
    for text in (made_up(seed * 1000 + n) for n in range(300)):
        assert parts(OURS.encode(text)) == parts(THEIRS.encode(text)), repr(text)


@given(st.lists(st.sampled_from([*"aZé,.! \n中İ\u0301'[", *ODD_WORDS]), max_size=40).map("".join))
def test_any_arrangement_gives_the_same_tokens(text: str) -> None:
    assert parts(OURS.encode(text, add_special_tokens=False)) == parts(THEIRS.encode(text, add_special_tokens=False))


def test_the_bundled_passages_give_the_same_tokens() -> None:
    lines = (Path(pyrag.__file__).parent / "data" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) > 50
    assert [parts(one) for one in OURS.encode_batch(texts)] == [parts(one) for one in THEIRS.encode_batch(texts)]


@pytest.mark.parametrize("limit", [4, 7, 16, 64])
def test_truncation_cuts_where_the_package_cuts(limit: int) -> None:
    ours, theirs = open_tokenizer(FILE), tokenizers.Tokenizer.from_file(str(FILE))
    ours.enable_truncation(limit)
    theirs.enable_truncation(limit)
    for text in (made_up(n) for n in range(200)):
        assert parts(ours.encode(text)) == parts(theirs.encode(text))
    ours.no_truncation()
    assert parts(ours.encode("a b c d e f g h")) == parts(THEIRS.encode("a b c d e f g h"))


def test_of_a_pair_the_second_text_is_cut() -> None:
    ours, theirs = open_tokenizer(FILE), tokenizers.Tokenizer.from_file(str(FILE))
    ours.enable_truncation(16, strategy="only_second")
    theirs.enable_truncation(16, strategy="only_second")
    for length in range(30):
        pair = ("Who wrote it?", " ".join(["houses"] * length))
        assert parts(ours.encode_batch([pair])[0]) == parts(theirs.encode_batch([pair])[0])
    assert len(ours.encode("word " * 40, "b").ids) == 16


def test_a_chunk_that_came_before_gives_the_same() -> None:
    ours = open_tokenizer(FILE)
    first = ours.encode("Zoë's zebra, Zoë's zebra")
    assert parts(ours.encode("Zoë's zebra, Zoë's zebra")) == parts(first)
    assert first.ids[1:5] == first.ids[6:10]  # Zoë ' s zebra


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    found = json.loads(FILE.read_text(encoding="utf-8"))
    change(found)
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["normalizer"].update(lowercase=False),
        lambda found: found["normalizer"].update(strip_accents=False),
        lambda found: found.update(pre_tokenizer={"type": "Whitespace"}),
        lambda found: found["model"].update(max_input_chars_per_word=50),
        lambda found: found["added_tokens"][0].update(lstrip=True),
    ],
)
def test_another_kind_is_left_to_the_package(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    assert isinstance(open_tokenizer(changed(tmp_path / "tokenizer.json", change)), tokenizers.Tokenizer)


def test_files_without_a_template_and_of_bert_processing(tmp_path: Path) -> None:
    bert = {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
    for processor in (None, bert):
        path = changed(tmp_path / "t.json", lambda found, with_=processor: found.update(post_processor=with_))
        ours, theirs = open_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
        assert isinstance(ours, WordPiece)
        assert parts(ours.encode("a house")) == parts(theirs.encode("a house"))
        assert ours.encode("a", "b c").ids == theirs.encode("a", "b c").ids


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"model": 3}',
        '{"model": {"type": "BPE"}}',
        '{"model": {"type": "WordPiece"}, "normalizer": 3}',
    ],
)
def test_a_damaged_file_is_a_value_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        open_tokenizer(tmp_path / "t.json")


def test_without_the_package_another_kind_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    path = changed(tmp_path / "t.json", lambda found: found["normalizer"].update(lowercase=False))
    with pytest.raises(ConfigError, match="kind WordPiece, which needs a package: run pip install tokenizers"):
        open_tokenizer(path)


def test_the_bundled_networks_run_without_the_package() -> None:
    code = (
        "import sys; sys.modules['tokenizers'] = sys.modules['huggingface_hub'] = None\n"
        "from pyrag.embedded.reader.neural.network import load\n"
        "print(load().spans('Who lives there?', [('Zoo', 'Two otters live there.')])[0].passage)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
