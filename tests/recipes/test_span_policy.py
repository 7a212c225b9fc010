"""The reader trained by reward, with torch and a tiny random network: its actions, its loss, and whole runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="training the embedded reader needs torch: see make test-reader")
pytest.importorskip("onnx", reason="training the embedded reader needs onnx: see make test-reader")

from pyrag.embedded.reader.neural.network import MODEL_FOLDER, load  # noqa: E402
from pyrag.errors import DataError, UsageError  # noqa: E402
from pyrag.runtime.engines import open_engines  # noqa: E402
from pyrag.settings import Settings  # noqa: E402
from pyrag.trace.model import Answer  # noqa: E402
from pyrag_rl.config import TrainConfig  # noqa: E402
from pyrag_rl.data.rows import Document, RowWriter, TrainRow  # noqa: E402
from pyrag_rl.folder import RunFolder  # noqa: E402
from recipes.reader.model import MINILM, Reader, Shape, shape_of  # noqa: E402
from recipes.span_policy.evaluation import scored  # noqa: E402
from recipes.span_policy.policy import answer_of, case_of, log_chances  # noqa: E402
from recipes.span_policy.start import weights_of_file, weights_of_onnx  # noqa: E402
from recipes.span_policy.train import grpo_loss, run  # noqa: E402

TINY = Shape(vocabulary=30522, width=32, heads=1, layers=1)
NAMES = ("Ann Lee", "Bo Ray", "Cy Fox", "Di Kay")
CONFIG = TrainConfig(agent="answer", model="embedded")


def row(place: int, *, enough: bool = True) -> TrainRow:
    name = NAMES[place % len(NAMES)]
    said = f"The mill {place} was founded by {name} in 1821." if enough else "Nobody knows."
    documents = (Document(id="1", title=f"Mill {place}", text=said),)
    return TrainRow(
        index=place, id=str(place), agent="answer", source="squad", question=f"Who founded the mill {place}?",
        answers=(name,), messages=(), documents=documents, sufficient=enough,
    )  # fmt: skip


def case(**options: bool) -> Any:
    shipped = load(MODEL_FOLDER)
    return case_of(row(0, **options), shipped.tokenizer, shipped.calibration)


@pytest.fixture
def tiny() -> Any:
    torch.manual_seed(0)
    return Reader(TINY)


def test_chances_are_those_of_spans_within_windows_and_unknown(tiny: Any) -> None:
    ready = case()
    chances = log_chances(tiny, ready).exp()
    assert chances.sum().item() == pytest.approx(1, abs=1e-4)
    count = len(ready.windows[0].offsets)
    lengths = [min(20, count - start) for start in range(count)]
    assert int((chances > 0).sum()) == sum(lengths) + 1
    assert len(chances) == ready.unknown + 1


def test_the_engine_takes_the_shipped_networks_likeliest_action() -> None:
    ready, model = case(), Reader(MINILM)
    model.load_state_dict(weights_of_onnx(MODEL_FOLDER / "reader.int8.onnx", MINILM))
    with torch.no_grad():
        chances = log_chances(model, ready)
    assert answer_of(ready, int(chances.argmax())) == Answer("Ann Lee", True)


def test_rewards() -> None:
    right, wrong, unknown = Answer("Ann Lee", True), Answer("Bo Ray", True), Answer("unknown", known=False)
    assert [scored(said, case().row, CONFIG).reward for said in (right, wrong, unknown)] == [1.0, 0.0, 0.0]
    assert [scored(said, case(enough=False).row, CONFIG).reward for said in (right, wrong, unknown)] == [0.0, 0.0, 1.0]
    assert scored(Answer("Lee", True), case().row, CONFIG).reward == pytest.approx(0.7 * 2 / 3)


def test_the_loss_follows_advantages_and_keeps_near_the_start() -> None:
    chances = torch.tensor([-1.0, -2.0], requires_grad=True)
    loss, kl = grpo_loss(chances, chances.detach(), torch.tensor([1.0, -1.0]), 0.5)
    loss.backward()
    assert (kl, chances.grad.tolist()) == (0.0, [-0.5, 0.5])
    loss, kl = grpo_loss(chances, chances.detach() + 1, torch.tensor([0.0, 0.0]), 0.5)
    assert kl == pytest.approx(torch.e - 2)
    assert loss.item() == pytest.approx(0.5 * kl)


def test_another_network_is_refused() -> None:
    with pytest.raises(DataError, match="is not a reader that can be trained on"):
        weights_of_onnx(MODEL_FOLDER / "embedder.int8.onnx", MINILM)


def prepared(folder: Path, **changes: Any) -> TrainConfig:
    torch.manual_seed(0)
    model = Reader(TINY)
    torch.nn.init.normal_(model.head.weight, std=0.3)
    torch.save(model.state_dict(), folder / "tiny.pt")
    assert shape_of(model.state_dict()) == TINY
    for name, first in (("rows", 0), ("held", 100)):
        with RowWriter(folder / f"{name}.parquet") as writer:
            for place in range(first, first + 16):
                writer.add(row(place, enough=place % 4 != 0))
    made = TrainConfig(
        agent="answer", model="embedded", adapter=str(folder / "tiny.pt"), data=str(folder / "rows.parquet"),
        out=str(folder / "run"), batch_size=8, group_size=16, epochs=30, learning_rate=3e-3, save_every=3,
    )  # fmt: skip
    return replace(made, **changes)


def scores(folder: Path) -> list[float]:
    return [data["critic/score/mean"] for data in RunFolder(folder / "run").read_metrics().values()]


def test_a_run_learns_and_gives_a_reader(tmp_path: Path) -> None:
    said: list[str] = []
    run(prepared(tmp_path, eval_data=str(tmp_path / "held.parquet")), said.append)
    got = scores(tmp_path)
    assert len(got) == 60
    assert sum(got[-6:]) > sum(got[:6]) + 0.6
    assert said[-1] == f"trained: ask with pyrag ask --llm embedded:{tmp_path / 'run' / 'reader'}"
    told = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert (told["after"]["rows"], set(told)) == (16, {"before", "after", "gain"})
    assert told["gain"]["reward"] == pytest.approx(told["after"]["reward"] - told["before"]["reward"])
    assert (tmp_path / "run" / "start" / "reader.int8.onnx").is_file()  # what was measured before: where it began
    engines = open_engines(Settings(llm=f"embedded:{tmp_path / 'run' / 'reader'}"))
    assert engines.agents.answerer.read("Who said it?", [one.passage() for one in row(1).documents or ()])


def test_rewards_of_others_teach_nothing(tmp_path: Path) -> None:
    run(prepared(tmp_path, shuffle_rewards=True), print)
    got = scores(tmp_path)
    assert sum(got[-6:]) < sum(got[:6]) + 0.6


class KilledError(Exception):
    pass


def test_a_killed_run_goes_on_with_the_same_draws(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    run(prepared(whole, epochs=6), print)
    lines: list[str] = []

    def killed(line: str) -> None:
        lines.append(line)
        raise KilledError

    with pytest.raises(KilledError):
        run(prepared(broken, epochs=6), killed)
    run(prepared(broken, epochs=6), lines.append)
    assert lines[1] == "continues after step 3 of 12"
    assert scores(broken) == scores(whole)
    one, other = (torch.load(folder / "run" / "weights.pt") for folder in (whole, broken))
    assert all(torch.equal(one[name], other[name]) for name in one)
    run(prepared(whole, epochs=6), lines.append)  # there is nothing to do any more
    assert len(scores(whole)) == 12
    run(prepared(whole, epochs=7), lines.append)
    assert len(scores(whole)) == 14


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": ""}, "data is missing: pass --data"),
        ({"algorithm": "sft"}, "trained by grpo, not sft"),
        ({"data": "nowhere"}, "cannot read the training set nowhere"),
        ({"eval_data": "nowhere"}, "cannot read the training set nowhere"),  # told now, not after the training
        ({"eval_data": "{}/rows.parquet"}, "16 questions are in both"),
        ({"adapter": "nowhere"}, "cannot read the weights nowhere: No such file"),
        ({"adapter": "{}/rows.parquet"}, "is not a reader that can be trained on"),
    ],
)
def test_what_cannot_be_trained(tmp_path: Path, changes: dict[str, str], says: str) -> None:
    made = prepared(tmp_path, **{key: value.format(tmp_path) for key, value in changes.items()})
    with pytest.raises(UsageError, match=says):
        run(made, print)
    assert not (tmp_path / "run").exists()


class Harm:
    """A pickle that does something when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("harm",)


@pytest.mark.parametrize("content", [Harm(), {}, [1], {"encoder.words.weight": torch.zeros(2, 2)}])
def test_weights_of_others_run_no_code(content: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(DataError, match="is not a reader that can be trained on"):
        weights_of_file(tmp_path / "x.pt")
    assert capsys.readouterr().out == ""
