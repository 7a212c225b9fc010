"""Passages that do not fit: what is left of them, and what is said about it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyrag.agents.context_window import ContextWindow, WindowedAnswerer, fit_passages
from pyrag.agents.protocol import Reading
from pyrag.errors import ContextLengthError, PermanentServiceError
from pyrag.llm.context import about_tokens, token_counter, too_long
from pyrag.trace.model import Passage


def passages(*scores: float, words: int = 40) -> list[Passage]:
    return [Passage(str(i), f"t{i}", f"word{i} " * words, score) for i, score in enumerate(scores)]


class Answerer:
    """Cites its last passage; refuses prompts above `window` tokens of text."""

    def __init__(self, window: int = 10**9) -> None:
        self.window = window
        self.asked: list[list[str]] = []

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        assert passages is not None
        self.asked.append([passage.id for passage in passages])
        if sum(about_tokens(passage.text) for passage in passages) > self.window:
            raise ContextLengthError("model server http://x said: too long")
        return Reading("a", True, (len(passages) - 1,), "because")


def test_what_fits_is_left_alone() -> None:
    given = passages(3, 2, 1)
    fitted = fit_passages(given, 10_000)
    assert fitted.passages == tuple(given)
    assert fitted.whole


def test_the_lowest_ranked_of_each_search_go_first() -> None:
    given = passages(9, 8, 7, 9, 8, 7)  # two searches
    length = about_tokens(given[0].text) + 9
    fitted = fit_passages(given, 4 * length)
    assert fitted.positions == (0, 1, 3, 4)
    assert not fitted.cut


def test_long_ones_are_cut_before_others_are_left_out() -> None:
    given = passages(3, 2, 1)
    given[1] = Passage("1", "long", "many words " * 2_000, 2)
    fitted = fit_passages(given, 500)
    assert fitted.positions == (0, 1, 2)
    assert fitted.cut == 1
    assert fitted.passages[1].text.endswith(("words …", "many …"))
    assert sum(about_tokens(passage.text) for passage in fitted.passages) <= 500


@pytest.mark.parametrize("text", ["word " * 5_000, "x" * 20_000, "漢字" * 5_000])
def test_a_single_passage_is_cut_to_what_fits(text: str) -> None:
    fitted = fit_passages([Passage("0", "t", text)], 100)
    assert fitted.cut == 1
    assert 32 <= about_tokens(fitted.passages[0].text) <= 100


async def test_a_refused_prompt_is_tried_once_with_half() -> None:
    inner = Answerer(window=200)
    reading = await WindowedAnswerer(inner).answer("q?", passages(5, 4, 3, 2))
    assert inner.asked == [["0", "1", "2", "3"], ["0", "1"]]
    assert reading.citations == (1,)
    assert "2 of 4 passages" in reading.note
    assert reading.note in reading.rationale


async def test_citations_count_in_what_came_in() -> None:
    inner = Answerer(window=200)
    reading = await WindowedAnswerer(inner).answer("q?", passages(5, 4, 5, 4))
    assert inner.asked[1] == ["0", "2"]
    assert reading.citations == (2,)


async def test_a_second_refusal_passes() -> None:
    inner = Answerer(window=0)
    with pytest.raises(ContextLengthError):
        await WindowedAnswerer(inner).answer("q?", passages(2, 1))
    assert len(inner.asked) == 2


async def test_a_known_window_is_kept_to_without_asking_twice() -> None:
    inner = Answerer()
    fitting = ContextWindow("Answer", window=1024, prompt=lambda: "word " * 80, reply_tokens=512)
    reading = await WindowedAnswerer(inner, fitting).answer("q?", passages(*[1.0] * 10))
    assert len(inner.asked) == 1
    assert 1 < len(inner.asked[0]) < 10
    assert "would not fit" in reading.note


async def test_only_long_prompts_ask_for_the_window() -> None:
    class Model:
        asked = 0

        async def context_tokens(self) -> int:
            self.asked += 1
            return 8192

    model, inner = Model(), Answerer()
    answerer = WindowedAnswerer(inner, ContextWindow(model=model))
    await answerer.answer("q?", passages(2, 1))
    assert model.asked == 0
    reading = await answerer.answer("q?", passages(*[1.0] * 200))
    assert model.asked == 1
    assert reading.note


@pytest.mark.parametrize(
    "said",
    [
        '{"error": {"message": "x", "code": "context_length_exceeded"}}',
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "This model's maximum context length is 8192 tokens. However, you requested 8 output tokens and your prompt"
        " contains 73728 characters (more than 65536 characters, which is the upper bound for 8184 input tokens).",
        "The decoder prompt (length 8192) plus the number of requested output tokens (at least 1) is longer than the"
        " maximum model length of 8192.",
        "Input length (9000) exceeds model's maximum context length (8192).",
        '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it",'
        '"type":"exceed_context_size_error","n_prompt_tokens":999,"n_ctx":512}}',
        '{"error":"the input length exceeds the context length"}',
        "input length exceeds maximum context length",
        "Input length (5000 tokens) exceeds the maximum allowed length (4095 tokens)",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context"
        " length of only 7866 tokens, which is not enough.",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>="
        " n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Your request exceeded model token limit: 8192",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Range of input length should be [1, 30720]",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "Input is too long for requested model.",
        "Prompt exceeds max length",
        "Context size has been exceeded.",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.",
        "Total tokens of image and text exceed max message tokens; input length 9000 exceeds the maximum length 8192",
    ],
)
def test_recognises_what_servers_say(said: str) -> None:
    error = too_long(PermanentServiceError("m", service="s", status=400, detail=said))
    assert error is not None
    assert (error.service, str(error)) == ("s", "m")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "maximum context length"),
        (400, "temperature must be at most 2"),
        (400, "injected HTTP 400"),
        (429, "Rate limit reached for model `x` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443."),
        (400, "max_tokens is too large: 16384. This model supports at most 4096 completion tokens"),
        (400, "response_format is not supported"),
        (None, ""),
    ],
)
def test_other_refusals_are_left_alone(status: int | None, said: str) -> None:
    assert too_long(PermanentServiceError("m", status=status, detail=said)) is None


def test_counts_by_a_tokenizer_where_there_is_one(tmp_path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert token_counter(str(tmp_path))("a b internationalisation") == 3
    assert token_counter(None)("abcdefgh") == 2
