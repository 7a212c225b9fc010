"""What is particular to single methods: their loops, their ends, and how the registry finds them."""

from __future__ import annotations

import pytest

from pyrag.errors import ConfigError, UsageError
from pyrag.methods.baselines.adaptive import Route, parse_route
from pyrag.methods.baselines.ircot import MAX_PARAGRAPHS, first_sentence
from pyrag.methods.baselines.self_ask import final_answer, follow_up
from pyrag.methods.registry import get_method, method_names, variants_of
from pyrag.trace.model import Passage
from tests.methods.conftest import ADA, BORN, DATE, PYRAG, Chat, World

NOTHING = "<answer>unknown</answer>"


def test_the_registry_is_the_folder() -> None:
    assert list(method_names()) == [
        "adaptive", "cot", "decompose-only", "direct", "hera", "ircot", "iter-retgen", "opera", "plan-only", "pyrag",
        "search-agent", "self-ask", "vanilla",
    ]  # fmt: skip
    dialects = ("search-r1", "research", "zerosearch", "stepsearch", "r1-searcher", "search-o1")
    assert variants_of("search-agent") == dialects
    assert variants_of("pyrag") == ()
    assert get_method("search-agent:research") is get_method("search-agent")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ircott", "no method 'ircott': did you mean 'ircot'"),
        ("-drive", "no method '-drive'"),
        ("base", "no method 'base'"),
        ("search-agent:reserch", "no variant 'reserch': did you mean 'research'"),
        ("search-agent:", "no variant ''"),
        ("zerosearch", "no method 'zerosearch': did you mean 'search-agent:zerosearch'"),
        ("no-rewrite", "no method 'no-rewrite': did you mean 'opera:no-rewrite'"),
        ("pyrag:fast", "no variant 'fast': it has none"),
    ],
)
def test_a_name_that_nobody_has(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        get_method(name)


class TestSelfAsk:
    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("So the final answer is: 1 May 1950.", "1 May 1950"),
            ("so the final answer is **Ada**", "Ada"),
            ("Follow up: Who?\nIntermediate answer: x\nSo the final answer is: made up", None),
            ("Follow up: Who?", None),
            ("<think>Follow up: Who?</think>So the final answer is: Ada", "Ada"),
            ("Hm.", None),
            ("**So the final answer is:** Ada", "Ada"),
            ("So the final answer is: **Ada**.", "Ada"),
            ("Final answer: Ada", "Ada"),
            ("**Final Answer:** Ada", "Ada"),
            ("So the answer is: Ada", "Ada"),
            ("The final answer is Ada.", "Ada"),
            ("Answer: Ada", "Ada"),
            ("<answer>Ada</answer>", "Ada"),
            ("So the final answer is: <answer>Ada</answer>", "Ada"),
            ("So the final answer is:\nAda", "Ada"),
            ('{"answer": "Ada"}', "Ada"),
            (r"\boxed{Ada}", "Ada"),
            ("No more questions are needed. So the final answer is: Ada", "Ada"),
            ("Are follow up questions needed here: No.\nSo the final answer is: Ada", "Ada"),
            ("Question 2: Where?\nFinal answer: made up", None),
        ],
    )
    def test_the_final_line(self, text: str, answer: str | None) -> None:
        found = final_answer(text)
        assert (found.text if found else None) == answer

    @pytest.mark.parametrize(
        "text",
        [
            "Follow up: Who made it?",
            "Follow-up question: Who made it?",
            "Follow-up question 2: Who made it?",
            "**Follow-up Question (2):** Who made it?",
            "1. Followup: Who made it?",
            "- Next follow-up: Who made it?",
            "Sub-question 3: Who made it?",
            "Question 1: Who made it?",
            "Q1: Who made it?",
            "Next question: Who made it?",
            "Follow\N{NON-BREAKING HYPHEN}up: Who made it?",
            "Follow up:\nWho made it?",
            "Yes. Follow up: Who made it?",
            "Are follow up questions needed here: Yes.\nFollow up: Who made it?",
            "Question: When was its director born?\nFollow up: Who made it?",
            '"Who made it?"',
        ],
    )
    def test_follow_up_questions_under_any_label(self, text: str) -> None:
        assert (follow_up(text), final_answer(text)) == ("Who made it?", None)

    @pytest.mark.parametrize(
        "text", ["Hm.", "So the final answer is: Ada", "Question: When?\nSo the answer is: 1950", ""]
    )
    def test_no_follow_up_question(self, text: str) -> None:
        assert follow_up(text) == ""

    async def test_a_question_asked_again_ends_it(self, world: World) -> None:
        asked = "Follow up: Who directed Alpha?"
        trace = await world.ask("self-ask", Chat([asked, ADA, asked, DATE]))
        assert (trace.answer.text, trace.usage.model_calls, trace.usage.retrievals) == ("1 May 1950", 4, 1)

    async def test_without_an_end_the_findings_are_put_together(self, world: World) -> None:
        model = Chat(["Follow up: Who directed Alpha?", ADA, "Follow up: When was Ada Berg born?", BORN, DATE])
        trace = await world.ask("self-ask", model, rounds=2)
        assert trace.answer.text == "1 May 1950"
        assert trace.steps[-1].query == (
            "Given: Who directed Alpha? Ada Berg. When was Ada Berg born? 1 May 1950. "
            "Answer the question: When was the director of Alpha born?"
        )
        assert [one.passage for one in trace.citations] == ["alpha", "ada"]

    async def test_a_line_out_of_form_is_followed_by_the_same(self, world: World) -> None:
        model = Chat(["I wonder.", "I still wonder.", NOTHING])
        trace = await world.ask("self-ask", model)
        assert (trace.answer.known, trace.error, len(trace.steps)) == (False, None, 2)
        assert "neither a follow-up question nor the final answer" in model.calls[1][-1].content

    async def test_an_unknown_intermediate_answer_goes_on(self, world: World) -> None:
        model = Chat(["Follow up: Who directed Alpha?", NOTHING, "So the final answer is: Ada"])
        trace = await world.ask("self-ask", model)
        assert trace.answer.text == "Ada"
        assert "Intermediate answer: unknown" in model.calls[2][-1].content
        assert trace.usage.retrievals == 1  # no recovery: Self-Ask has none


class TestIRCoT:
    @pytest.mark.parametrize(
        ("text", "first"),
        [
            ("Alpha was made by J. R. Berg. He was born later.", "Alpha was made by J. R. Berg."),
            ("Mr. Berg made it. Then he left.", "Mr. Berg made it."),
            ('She said "yes." Then she left.', 'She said "yes."'),
            ("It cost 1.5 million.\nMore follows", "It cost 1.5 million."),
            ("no end", "no end"),
            ("<think>Hm. Yes.</think>\nAlpha is a film. More.", "Alpha is a film."),
            ("", ""),
            ("The next sentence: Alpha is a film. More.", "Alpha is a film."),
            ("**Next step:** Alpha is a film.", "Alpha is a film."),
        ],
    )
    def test_the_first_sentence(self, text: str, first: str) -> None:
        assert first_sentence(text) == first

    async def test_paragraphs_are_capped(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        async def many(query: str, topk: int) -> list[Passage]:
            return [Passage(f"{query} {n}", "t", f"text {n} of {query}") for n in range(topk)]

        monkeypatch.setattr(world, "retrieve", many)
        trace = await world.ask("ircot", Chat(["One.", "Two.", "So the answer is: x.", BORN]), topk=10)
        assert len(trace.steps[-1].passages) == MAX_PARAGRAPHS
        assert len(trace.steps[1].passages) == 10

    async def test_repeating_oneself_ends_it(self, world: World) -> None:
        trace = await world.ask("ircot", Chat(["Alpha is a film.", "Alpha is a film.", BORN]))
        assert [step.primitive for step in trace.steps].count("retrieve") == 2

    async def test_a_reply_without_a_sentence_is_asked_for_again(self, world: World) -> None:
        model = Chat(["<think>Hm.</think>", "So the answer is: 1 May 1950.", BORN])
        trace = await world.ask("ircot", model)
        assert (trace.answer.text, trace.usage.model_calls, trace.usage.retrievals) == ("1 May 1950", 3, 1)
        assert "one sentence" in model.calls[1][-1].content

    async def test_rounds(self, world: World) -> None:
        model = Chat([*(f"Alpha is film number {n}." for n in range(3)), BORN])
        trace = await world.ask("ircot", model, rounds=3)
        assert (trace.usage.model_calls, trace.usage.retrievals) == (4, 4)


class TestIterRetGen:
    async def test_a_generation_without_an_answer_ends_it(self, world: World) -> None:
        trace = await world.ask("iter-retgen", Chat([NOTHING]))
        assert (trace.answer.known, trace.usage.retrievals, trace.error) == (False, 1, None)

    async def test_an_unknown_generation_goes_on_with_its_rationale(self, world: World) -> None:
        unsure = (
            "<redacted_thinking>It lacks the page of Ada Berg, a director of films born in May.</redacted_thinking>"
            + NOTHING
        )
        trace = await world.ask("iter-retgen", Chat([unsure, BORN]), topk=1)
        assert (trace.answer.text, trace.usage.retrievals) == ("1 May 1950", 2)
        assert (
            trace.steps[2].query == f"{trace.question} It lacks the page of Ada Berg, a director of films born in May."
        )

    async def test_a_long_generation_fits_a_query(self, world: World) -> None:
        long = f"<redacted_thinking>{'Ä ' * 9000}</redacted_thinking><answer>Ada</answer>"
        trace = await world.ask("iter-retgen", Chat([long, ADA]))
        assert trace.error is None
        assert all(len(query.encode()) <= 8192 for query, _ in world.log)


class TestAdaptive:
    @pytest.mark.parametrize(
        ("text", "route"),
        [
            ("A", Route.DIRECT),
            ("The class is B.", Route.SINGLE),
            ("<think>A? No.</think> C", Route.MULTI),
            ("", Route.MULTI),
            ("Beats me", Route.MULTI),
            ("B. A single search suffices.", Route.SINGLE),
            ("A single search is enough: B", Route.SINGLE),
            ("**B**", Route.SINGLE),
            ("A: everyone knows it", Route.DIRECT),
            ("It is C, because A is for common knowledge.", Route.MULTI),
        ],
    )
    def test_routes(self, text: str, route: Route) -> None:
        assert parse_route(text) == route

    async def test_each_route_is_its_method(self, world: World) -> None:
        direct = await world.ask("adaptive", Chat(["A", DATE]))
        single = await world.ask("adaptive", Chat(["B", BORN]))
        multi = await world.ask("adaptive", Chat(["C", *PYRAG]))
        assert [len(trace.programs) for trace in (direct, single, multi)] == [0, 1, 1]
        assert [trace.usage.model_calls for trace in (direct, single, multi)] == [2, 2, 6]
        assert [trace.steps[0].output for trace in (direct, single, multi)] == ["A", "B", "C"]
        assert [one.id for one in multi.steps] == list(range(6))

    async def test_a_single_retrieval_does_not_recover(self, world: World) -> None:
        trace = await world.ask("adaptive", Chat(["B", NOTHING]))
        assert (trace.answer.known, trace.usage.model_calls, trace.usage.retrievals) == (False, 2, 1)

    async def test_without_a_model_the_sub_queries_decide(self, world: World) -> None:
        multi = await world.ask_embedded("adaptive")
        single = await world.ask_embedded("adaptive", question="Who directed Alpha?")
        assert len(multi.sub_queries) > 1
        assert len(single.sub_queries) == 1
        assert single.programs[0].planner == "vanilla"


async def test_vanilla_does_not_recover_unless_told(world: World) -> None:
    """Its deeper search could find more: there are as many passages as that."""
    trace = await world.ask("vanilla", Chat([NOTHING]), topk=1)
    told = await world.ask("vanilla", Chat([NOTHING, BORN]), topk=1, recovery="boost")
    assert (trace.answer.known, trace.usage.model_calls, trace.usage.retrievals) == (False, 1, 1)
    assert (told.answer.known, told.usage.model_calls, told.usage.retrievals) == (True, 2, 2)


SENTENCE = "<answer>The director of the film Alpha was born on 1 May 1950 in a small town.</answer>"


@pytest.mark.parametrize("method", ["direct", "cot"])
@pytest.mark.parametrize("bad", ["I would have to look that up first.\n\nLet me see.", SENTENCE])
async def test_an_answer_out_of_form_is_asked_for_once_more(world: World, method: str, bad: str) -> None:
    model = Chat([bad, DATE])
    trace = await world.ask(method, model)
    assert (trace.answer.text, trace.usage.model_calls, len(trace.steps)) == ("1 May 1950", 2, 1)
    assert model.calls[1][-1].content.startswith("That reply cannot be used")


@pytest.mark.parametrize("method", ["direct", "cot"])
@pytest.mark.parametrize(
    "text",
    [
        "Step 1: Ada Berg.\nStep 2: born then.\n\n**Final Answer:** 1 May 1950",
        "She was born long ago.\nSo the answer is: 1 May 1950.",
        r"Thus \boxed{1 May 1950}",
        '{"answer": "1 May 1950"}',
        "**Answer:** 1 May 1950",
        "1 May 1950",
    ],
)
async def test_answers_of_other_forms_take_one_call(world: World, method: str, text: str) -> None:
    trace = await world.ask(method, Chat([text]))
    assert (trace.answer.text, trace.usage.model_calls) == ("1 May 1950", 1)


async def test_an_answer_out_of_form_twice_is_salvaged(world: World) -> None:
    trace = await world.ask("cot", Chat(["Hm.\n\nLet me see.", "Let me think.\n\n1950"]))
    assert (trace.answer.known, trace.usage.model_calls) == (True, 2)
    assert "1950" in trace.answer.text


async def test_a_single_sub_query_is_not_aggregated(world: World) -> None:
    trace = await world.ask("decompose-only", Chat(['["Who directed Alpha?"]', ADA]))
    assert (trace.answer.text, [one.passage for one in trace.citations]) == ("Ada Berg", ["alpha"])


async def test_plan_only_never_runs_its_plan(world: World) -> None:
    trace = await world.ask("plan-only")
    assert len(trace.programs) == 1
    assert [(step.primitive, step.query) for step in trace.steps] == [
        ("retrieve", trace.question),
        ("write", trace.question),
    ]


async def test_a_question_that_cannot_be_asked(world: World) -> None:
    with pytest.raises(UsageError, match="too long"):
        await world.ask("iter-retgen", Chat([]), question="x" * 9000)
