"""What the embedded planner makes of questions, in sentences of our own."""

from __future__ import annotations

import ast

import pytest

from pyrag.embedded.planner.planner import EmbeddedDecomposer, EmbeddedPlanner
from pyrag.embedded.rules import EmbeddedRules
from pyrag.episode.plan_checks import check_plan
from pyrag.errors import BadOutputError
from pyrag.methods.hera.embedded.orchestrator import EmbeddedOrchestrator
from pyrag.methods.opera.rule_planner import RuleGoalPlanner
from pyrag_helpers import HELPERS

PLANNER = EmbeddedPlanner()

CHAINS = {
    "When was the director of film Copper Moon born?": (
        "Who directed the film Copper Moon?",
        "When was the director of the film Copper Moon born?",
    ),
    "Where was the place of death of Ada Quill's husband?": (
        "Who is the husband of Ada Quill?",
        "Where did the husband of Ada Quill die?",
    ),
    "Which country the performer of song Copper Moon (Kell Song) is from?": (
        "Who is the performer of the song Copper Moon (Kell Song)?",
        "What is the nationality of the performer of the song Copper Moon (Kell Song)?",
    ),
    "When is the composer of film Copper Moon 's birthday?": (
        "Who composed the film Copper Moon?",
        "When was the composer of the film Copper Moon born?",
    ),
    "When was the director of Copper Moon's spouse born?": (
        "Who directed Copper Moon?",
        "Who is the spouse of the director of Copper Moon?",
        "When was the spouse of the director of Copper Moon born?",
    ),
    "What is the capital of the country where the author of The Glass Harbour was born?": (
        "Who is the author of The Glass Harbour?",
        "In which country was the author of The Glass Harbour born?",
        "What is the capital of the country where the author of The Glass Harbour was born?",
    ),
    "What is the capital of the homeland of the author of The Glass Harbour?": (
        "Who is the author of The Glass Harbour?",
        "Which country is the author of The Glass Harbour from?",
        "What is the capital of the homeland of the author of The Glass Harbour?",
    ),
    "In which town did the father of Ada Quill come into the world?": (
        "Who is the father of Ada Quill?",
        "In which town was the father of Ada Quill born?",
    ),
    "Where was the maker of the 1987 film Copper Moon born?": (
        "Who directed the 1987 film Copper Moon?",
        "Where was the director of the 1987 film Copper Moon born?",
    ),
    "What country was the author of The Glass Harbour a citizen of?": (
        "Who is the author of The Glass Harbour?",
        "What country was the author of The Glass Harbour a citizen of?",
    ),
    "Quill Hall is a hostel in a university located in what Norland city?": (
        "Quill Hall is a hostel in which university?",
        "The university that Quill Hall is a hostel in is located in what Norland city?",
    ),
    "Copper Moon is the third album by a singer-songwriter from what state?": (
        "Copper Moon is the third album by which singer-songwriter?",
        "The singer-songwriter that Copper Moon is the third album by is from what state?",
    ),
    "Ada Quill played for a Norland band whose founder is whom?": (
        "Ada Quill played for which Norland band?",
        "The Norland band that Ada Quill played for's founder is whom?",
    ),
    "Where was the king born whose army Ada Quill destroyed in 1309?": (
        "Which king's army did Ada Quill destroy in 1309?",
        "Where was the king whose army Ada Quill destroyed in 1309 born?",
    ),
    "When is Hakul Iv Of Norland's father's birthday?": (
        "Who is the father of Hakul IV Of Norland?",
        "When was the father of Hakul IV Of Norland born?",
    ),
    "Who founded the company that published Copper Moon?": (
        "Which company published Copper Moon?",
        "Who founded the company that published Copper Moon?",
    ),
    "When was the country that produced Copper Moon taken by the Danes?": (
        "Which country produced Copper Moon?",
        "When was the country that produced Copper Moon taken by the Danes?",
    ),
    "Which river runs through the city that is home to the college Ada Quill dropped out of?": (
        "Which college did Ada Quill drop out of?",
        "Which city is home to the college Ada Quill dropped out of?",
        "Which river runs through the city that is home to the college Ada Quill dropped out of?",
    ),
    "Ada Quill was born on an island; which language is spoken in the country that island belongs to?": (
        "Ada Quill was born on which island?",
        "Which country does the island belong to?",
        "Which language is spoken in the country the island belongs to?",
    ),
    "Who is the paternal grandmother of Ada Quill?": (
        "Who is the father of Ada Quill?",
        "Who is the mother of the father of Ada Quill?",
    ),
    "Who is Ada Quill's mother-in-law?": (
        "Who is the spouse of Ada Quill?",
        "Who is the mother of the spouse of Ada Quill?",
    ),
    "Which league plays in the country with the lowest average temperature?": (
        "Which country has the lowest average temperature?",
        "Which league plays in the country with the lowest average temperature?",
    ),
    "What position did the winner of the 1998 Kell Cup play?": (
        "Who is the winner of the 1998 Kell Cup?",
        "What position did the winner of the 1998 Kell Cup play?",
    ),
    "Who mixed the album partially produced by a Norland drummer born in Ashton?": (
        "Which Norland drummer was born in Ashton?",
        "Which album was partially produced by the Norland drummer born in Ashton?",
        "Who mixed the album partially produced by the Norland drummer born in Ashton?",
    ),
    "What show does a retired Kell Foxes goalkeeper, who missed the 1998 cup due to a broken leg, host?": (
        "Which retired Kell Foxes goalkeeper missed the 1998 cup due to a broken leg?",
        "What show does the retired Kell Foxes goalkeeper that missed the 1998 cup due to a broken leg host?",
    ),
    "When was the singer born who is known for her husky voice and whose third album is Copper Moon?": (
        "Which singer is known for her husky voice and whose third album is Copper Moon?",
        "When was the singer that is known for her husky voice and whose third album is Copper Moon born?",
    ),
    "There is a country where steam trams were built. Who led the group that conquered this country?": (
        "In which country were steam trams built?",
        "Which group conquered the country where steam trams were built?",
        "Who led the group that conquered the country where steam trams were built?",
    ),
    "Besides the continent of the river which the Kell turns into, where did Norland fight?": (
        "Which river does the Kell turn into?",
        "On which continent is the river the Kell turns into?",
        "Besides the continent of the river the Kell turns into, where did Norland fight?",
    ),
    "When was the tower clock built in the city where Ada Quill died?": (
        "In which city did Ada Quill die?",
        "When was the tower clock built in the city where Ada Quill died?",
    ),
    "In which country was the inventor of the telephone born?": (
        "Who invented the telephone?",
        "In which country was the inventor of the telephone born?",
    ),
}


@pytest.mark.parametrize(("question", "expected"), CHAINS.items())
async def test_chains_are_taken_apart(question: str, expected: tuple[str, ...]) -> None:
    assert (await EmbeddedDecomposer().decompose(question)).sub_queries == expected


FACTS = {
    "When was Ada Quill born?": "7 May 1901",
    "When was Bo Lind born?": "3 March 1950",
    "When did Ada Quill die?": "1980",
    "When did Bo Lind die?": "2001",
    "What is the nationality of Ada Quill?": "Danish",
    "What is the nationality of Bo Lind?": "Denmark",
    "What is the nationality of Cy Dow?": "Peru",
    "Who directed Copper Moon?": "Ada Quill",
    "Who directed Tin Sun?": "Bo Lind",
    "Who directed the film Copper Moon?": "Ada Quill",
    "Who directed the film Tin Sun?": "Bo Lind",
    "When was the film Copper Moon released?": "1930",
    "When was the film Tin Sun released?": "12 June 1929",
    "In which city was Ada Quill born?": "Ashton",
    "In which city was Bo Lind born?": "Kellby",
    "What is the population of Ashton?": "about 1.2 million",
    "What is the population of Kellby?": "950,000",
    "During which years was Ada Quill active?": "1914–1938",
    "During which years was Bo Lind active?": "from 1921 to 1944",
    "When was Ashton Bridge founded?": "1890",
    "When was Kell Bridge founded?": "the 1870s",
    "How long is Ashton Bridge?": "120 metres",
    "How long is Kell Bridge?": "350 metres",
    "When was Tin Sun released?": "12 June 1929",
    "What genre is Copper Moon?": "drama and satire",
    "What genre is Tin Sun?": "satire, romance",
}

ANSWERS = {
    "Who is older, Ada Quill or Bo Lind?": "Ada Quill",
    "Who was born later: Ada Quill or Bo Lind?": "Bo Lind",
    "Was Ada Quill or Bo Lind born first?": "Ada Quill",
    "Who died first out of Ada Quill and Bo Lind?": "Ada Quill",
    "Between Ada Quill and Bo Lind, who died later?": "Bo Lind",
    "Which of the two, Ada Quill or Bo Lind, was born first?": "Ada Quill",
    "Who lived longer, Ada Quill or Bo Lind?": "Ada Quill",
    "Is Ada Quill older than Bo Lind?": "yes",
    "Did Bo Lind die before Ada Quill?": "no",
    "How many years older is Ada Quill than Bo Lind?": "48",
    "Which film came out first, Copper Moon or Tin Sun?": "Tin Sun",
    "Which film has the director who was born later, Copper Moon or Tin Sun?": "Tin Sun",
    "Which film whose director is younger, Copper Moon or Tin Sun?": "Tin Sun",
    "Which film has the director died first, Copper Moon or Tin Sun?": "Copper Moon",
    "Who was born first, the director of Copper Moon or the director of Tin Sun?": "Ada Quill",
    "Are Ada Quill and Bo Lind of the same nationality?": "yes",
    "Does Ada Quill have the same nationality as Cy Dow?": "no",
    "Do director of film Copper Moon and director of film Tin Sun share the same nationality?": "yes",
    "Do both films, Copper Moon and Tin Sun, have the directors who are from the same country?": "yes",
    "Are the directors of both films Copper Moon and Tin Sun from the same country?": "yes",
    "Do Copper Moon and Tin Sun have the same director?": "no",
    "Were Ada Quill and Bo Lind born in the same city?": "no",
    "Were Ada Quill and Bo Lind born in the same year?": "no",
    "What nationality do Ada Quill and Bo Lind share?": "Danish",
    "What genre do Copper Moon and Tin Sun have in common?": "satire",
    "When were Ada Quill and Bo Lind both active?": "1921–1938",
    "Which city has a larger population, Ashton or Kellby?": "Ashton",
    "Which is older, Ashton Bridge or Kell Bridge?": "Kell Bridge",
    "Which came first, the release of Tin Sun or the birth of Bo Lind?": "Tin Sun",
    "Is Ashton Bridge longer than Kell Bridge?": "no",
}


def run(source: str, facts: dict[str, str], whole: str = "the whole question") -> str:
    """The program's answer; a question without a fact of its own is unknown, one over two searches is `whole`."""

    def answer(query: str, docs: list[str]) -> str:
        return facts.get(query, whole if len(docs) > 1 else "unknown")

    values: dict[str, object] = {**HELPERS, "retrieve": lambda query, topk: [query], "answer": answer}
    exec(compile(source, "<program>", "exec"), values)
    return str(values["final_answer"])


@pytest.mark.parametrize(("question", "expected"), ANSWERS.items())
async def test_programs_compute_the_answer(question: str, expected: str) -> None:
    plan = await PLANNER.plan(question, None)
    assert run(plan.source, FACTS) == expected
    assert not check_plan(plan.source, plan.sub_queries, ("retrieve", "answer"), tuple(HELPERS))


@pytest.mark.parametrize("question", [question for question in ANSWERS if "both active" not in question])
async def test_an_unknown_value_falls_back_to_the_whole_question(question: str) -> None:
    plan = await PLANNER.plan(question, None)
    assert run(plan.source, {}) == "the whole question"


async def test_a_program_reads_as_a_person_would_write_it() -> None:
    plan = await PLANNER.plan("Where was the director of film Copper Moon born?", None)
    assert plan.source.splitlines() == [
        'docs_director = retrieve("Copper Moon film director directed by", topk=5)',
        'director = answer("Who directed the film Copper Moon?", docs_director)',
        'docs_birthplace = retrieve(f"{director} director born in", topk=5)',
        'birthplace = answer(f"Where was {director} born?", docs_birthplace)',
        "final_answer = birthplace",
    ]


@pytest.mark.parametrize(
    ("question", "known"),
    [
        ("When was Ada Quill born?", True),
        ("Which 1988 comedy had music composed by the only glassblower in the industry?", False),
        ("The Kell is a river, which was crossed by an explorer who was born where?", False),
    ],
)
async def test_what_no_rule_reads_is_one_step_and_says_so(question: str, known: bool) -> None:
    plan = await PLANNER.plan(question, None)
    assert plan.source.count("retrieve(") == 1
    assert question in plan.source
    assert (plan.note == "") is known


@pytest.mark.parametrize("claim", ["Ada wrote Alpha.", "Ada wrote Alpha and was born in Rome. It won a prize."])
async def test_a_claim_is_said_to_need_a_language_model(claim: str) -> None:
    question = f"Is this true? {claim}"
    plans = (
        await EmbeddedPlanner().plan(question, None),
        await RuleGoalPlanner(EmbeddedRules()).plan(question),
        await EmbeddedOrchestrator(EmbeddedRules()).orchestrate(question, ()),
    )
    assert all("rules cannot weigh a claim" in plan.note for plan in plans)


async def test_two_names_without_relation_are_looked_up_separately() -> None:
    plan = await PLANNER.plan("Are Copper Moon and Tin Sun both board games?", None)
    assert plan.source.count("retrieve(") == 2
    assert "docs_1 + docs_2" in plan.source


async def test_repair_never_returns_a_program_twice_and_ends() -> None:
    question = "Where was the uncle of Ada Quill born?"
    seen = [(await PLANNER.plan(question, None)).source]
    for _ in range(5):
        plan = await PLANNER.repair(question, (), seen[-1], "ValueError: unknown")
        assert plan.note
        seen.append(plan.source)
    assert len(set(seen)) == len(seen)
    assert "father" in seen[0]
    assert "mother" in seen[1]
    with pytest.raises(BadOutputError, match="no further program"):
        await PLANNER.repair(question, (), seen[-1], "ValueError: unknown")


async def test_repair_of_a_foreign_program_starts_with_the_own_one() -> None:
    question = "Where was the director of Copper Moon born?"
    plan = await PLANNER.repair(question, (), "x = 1", "NameError")
    assert plan.source == (await PLANNER.plan(question, None)).source


async def test_names_with_quotes_and_and_stay_whole() -> None:
    plan = await PLANNER.plan('Which film came out first, "Salt and Smoke" or Tin Sun?', None)
    assert run(plan.source, {}) == "the whole question"
    strings = [node.value for node in ast.walk(ast.parse(plan.source)) if isinstance(node, ast.Constant)]
    assert "Salt and Smoke" in strings


async def test_sub_queries_of_another_decomposer_become_steps() -> None:
    question = 'Which 1988 comedy had a "cue {0}" by the only glassblower?'
    queries = ("Who was the only glassblower?", "Which 1988 comedy did #1 work on, take #9?")
    plan = await PLANNER.plan(question, queries)
    assert plan.sub_queries == queries
    assert 'retrieve(f"Which 1988 comedy did {answer_1} work on, take #9?", topk=5)' in plan.source
    asked: list[str] = []

    def answer(query: str, docs: object = None) -> str:
        asked.append(query)
        return "Ada Quill"

    values: dict[str, object] = {"retrieve": lambda query, topk: [query], "answer": answer}
    exec(compile(plan.source, "<program>", "exec"), values)
    assert asked[1] == "Which 1988 comedy did Ada Quill work on, take #9?"
    assert asked[2].startswith("Given: Who was the only glassblower? Ada Quill; ")
    assert asked[2].endswith(f"Answer the question: {question}")
