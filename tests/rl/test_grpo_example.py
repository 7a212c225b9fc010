"""`examples/grpo/train.py` on a tiny random model: its arithmetic, and that it learns what is rewarded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

SCRIPT = Path(__file__).parents[2] / "examples/grpo/train.py"
ROW = {"prompt": [{"role": "user", "content": "Say it."}], "extra_info": {"answers": ["Ada Berg"]}}


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grpo_example", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.rl.tiny import make

    folder = tmp_path_factory.mktemp("grpo") / "tiny"
    make(folder, ["Say it. user assistant <answer>Ada Berg</answer>"], vocabulary=300)
    return folder


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<answer>Ada Berg</answer>", 1.0),
        ("<think>She did.</think>\n<answer>ada</answer>\n", 2 / 3),
        ("<answer>Nils</answer>", 0.0),
        ("Ada Berg", 0.0),
        ("<answer>Ada Berg</answer> and more", 0.0),
    ],
)
def test_rewards_are_f1_of_the_answer(example: ModuleType, reply: str, expected: float) -> None:
    assert example.reward(reply, ["Somebody Else", "Ada Berg"]) == pytest.approx(expected)


def test_it_learns_what_is_rewarded(example: ModuleType, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    monkeypatch.setattr(example, "TOKENS", 8)
    monkeypatch.setattr(example, "reward", lambda reply, answers: reply.count("e") / 8)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rewards = [example.step(model, tokenizer, optimiser, [ROW] * 2) for _ in range(40)]
    assert sum(rewards[-5:]) / 5 > 0.5 > 0.2 > sum(rewards[:5]) / 5


def test_equal_rewards_teach_nothing(example: ModuleType, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    monkeypatch.setattr(example, "TOKENS", 4)
    monkeypatch.setattr(example, "reward", lambda reply, answers: 0.5)
    before = [weights.clone() for weights in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    assert example.step(model, tokenizer, optimiser, [ROW]) == 0.5
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_the_script_saves_a_model(
    example: ModuleType, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "rows.parquet")
    monkeypatch.setattr(example, "TOKENS", 4)
    example.main(str(tiny), str(tmp_path / "rows.parquet"), str(tmp_path / "out"), "2")
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["step 1", "step 2"]
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
