"""Descriptions are found by grammar: any noun, any verb, at any depth; one name with one relation is left whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.embedded.lexicon.verbs import base_of, is_base, is_participle, is_past, is_present, present_of
from pyrag.embedded.planner.grammar.bounds import Bounds
from pyrag.embedded.planner.grammar.nested import hops, unnest
from pyrag.embedded.planner.planner import parse
from pyrag.embedded.planner.program_text import sub_queries
from pyrag.embedded.planner.wording import sub_question

NAMES = ("Quillan Ford", "Ashton", "Norland", "the Kell River", "Copper Moon")
NOUNS = ("republic", "guild", "sculptor", "village", "parish", "airline", "ballad", "tribe", "museum")
CLAUSES = (
    "that outlawed {}", "which surrounds {}", "who ridiculed {}", "where {} was quarantined", "in which {} grew up",
    "{} fled from", "that {} once besieged", "whose envoys visited {}", "ruined by {}", "sheltering the remains of {}",
)  # fmt: skip
QUESTIONS = (
    "When was {} abolished?", "How many windmills does {} have?", "Who painted the gates of {}?", "Why did {} vanish?",
    "Which river flows past {}?", "In 1990, what happened to {}?", "What is the motto of {}?",
)  # fmt: skip


@st.composite
def described(draw: st.DrawFn, steps: int) -> str:
    if steps == 0:
        return draw(st.sampled_from(NAMES))
    clause = draw(st.sampled_from(CLAUSES)).format(draw(described(steps - 1)))
    return f"the {draw(st.sampled_from(NOUNS))} {clause}"


@pytest.mark.parametrize("steps", [0, 1])
@given(data=st.data())
def test_a_description_is_a_step_whatever_its_noun_and_verb(steps: int, data: st.DataObject) -> None:
    question = data.draw(st.sampled_from(QUESTIONS)).format(data.draw(described(steps)))
    assert len(sub_queries(question, parse(question))) == steps + 1


@given(clauses=st.lists(st.sampled_from(CLAUSES[:3]), min_size=2, max_size=5), noun=st.sampled_from(NOUNS))
def test_clauses_that_end_in_a_description_nest_to_any_depth(clauses: list[str], noun: str) -> None:
    phrase = "Ashton"
    for clause in clauses:
        phrase = f"the {noun} {clause.format(phrase)}"
    question = f"When was {phrase} abolished?"
    assert len(sub_queries(question, parse(question))) == len(clauses) + 1


@pytest.mark.parametrize(
    ("question", "template", "asked"),
    [
        (
            "How many windmills did the man who settled Ashton while he lived in Norland own in 1990",
            "How many windmills did {0} own in 1990",
            "Who settled Ashton while he lived in Norland?",
        ),
        (
            "What was the republic which invaded Norland's nickname",
            "What was {0}'s nickname",
            "Which republic invaded Norland?",
        ),
        (
            "What happened to the first monarch to reside at Kell Palace",
            "What happened to {0}",
            "Which monarch was the first monarch to reside at Kell Palace?",
        ),
        (
            "On what plain is the largest city in Norland located",
            "On what plain is {0} located",
            "What is the largest city in Norland?",
        ),
        (
            "Where does the body of water near Ashton begin",
            "Where does {0} begin",
            "Which body of water is near Ashton?",
        ),
        ("Where is the man who forged Copper Moon from", "Where is {0} from", "Who forged Copper Moon?"),
        (
            "Scholars fled to the abbey where Quillan Ford died during what century",
            "Scholars fled to {0} during what century",
            "In which abbey did Quillan Ford die?",
        ),
        (
            "How many guilds in the parish the team owned by Kell Motors calls home are rich",
            "How many guilds in {0} are rich",
            "Which parish does the team owned by Kell Motors call home?",
        ),
    ],
)
def test_a_description_ends_where_the_question_goes_on(question: str, template: str, asked: str) -> None:
    found, args = unnest(question)
    assert (found, [sub_question(arg) for arg in args]) == (template, [asked])  # type: ignore[arg-type]


def test_two_descriptions_stand_side_by_side() -> None:
    question = "What treaty ended the war between the tribe that razed Ashton and the guild which funded Norland?"
    assert sub_queries(question, parse(question))[:2] == (
        "Which tribe razed Ashton?",
        "Which guild funded Norland?",
    )


@pytest.mark.parametrize(
    "question",
    [
        "Which language is the official language of Norland?",
        "When was the Treaty of the Three Rivers signed?",
        "Who wrote The Man Who Knew Ashton?",
        'Who recorded the song "The House That Norland Built"?',
        "What is the name of the guild that funded Norland?",
        "Who played the villain in Copper Moon?",
        "When did Quillan Ford become the first mayor of Ashton?",
        "How large is the area of Norland?",
        "Until Norland fell, who was the mayor of Ashton?",
        "What was the cause of the fire in Ashton?",
    ],
)
def test_one_name_with_one_relation_stays_whole(question: str) -> None:
    assert len(sub_queries(question, parse(question))) == 1


def test_a_clause_without_its_verb_is_no_description() -> None:
    tokens = ["the", "sculptor", "who", "of", "Ashton"]
    assert Bounds(tokens, "nothing").end(2) is None


WORDS = (
    "The",
    "the",
    "a",
    "who",
    "that",
    "which",
    "with",
    "of",
    "'s",
    "'",
    ",",
    "in",
    "was",
    "did",
    "to",
    "where",
    "one",
)


@given(st.lists(st.sampled_from((*WORDS, "Ashton", "Ashton's", "largest", "city", "and", "between")), max_size=40))
def test_any_words_are_read_without_an_error(words: list[str]) -> None:
    text = " ".join(words)
    template, args = unnest(text)
    assert sorted(map(int, re.findall(r"\{(\d)\}", template))) == list(range(len(args)))[:10]
    assert all(hops(arg) > 0 for arg in args)


@pytest.mark.parametrize(
    ("verb", "base"),
    [
        ("wrote", "write"), ("stopped", "stop"), ("carried", "carry"), ("died", "die"), ("invaded", "invade"),
        ("hosts", "host"), ("established", "establish"), ("passed", "pass"), ("red", ""), ("village", ""),
    ],
)  # fmt: skip
def test_the_base_of_a_verb(verb: str, base: str) -> None:
    assert base_of(verb) == base


def test_forms_of_verbs_are_told_by_list_and_ending() -> None:
    assert is_past("zigzagged")
    assert is_past("wrote")
    assert not is_participle("wrote")
    assert is_participle("written")
    assert is_base("retake")
    assert is_present("carries")
    assert [present_of(word) for word in ("containing", "carrying", "reaching", "ceiling")] == [
        "contains",
        "carries",
        "reaches",
        "",
    ]
    assert not is_past("hundred")


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        (
            "Which painter was born in the same village as the man who forged Copper Moon?",
            ("Who forged Copper Moon?", "The man who forged Copper Moon was born in which village?"),
        ),
        (
            "Which guild gave work to where Quillan Ford was raised?",
            ("In which place was Quillan Ford raised?",),
        ),
        ("When was the Copper Moon director knighted?", ("Who directed Copper Moon?",)),
        (
            "Who is the abbot that Quillan Ford fled from's birthplace's mayor married to?",
            (
                "Which abbot did Quillan Ford flee from?",
                "Where was the abbot Quillan Ford fled from born?",
                "Who is the mayor of the birthplace of the abbot Quillan Ford fled from?",
            ),
        ),
        ("When did the organiser of the offsite join?", ("Who is the organiser of the offsite?",)),
        ("Where does the chair of our choir live?", ("Who is the chair of our choir?",)),
        ("How much does the caretaker of the hall earn?", ("Who is the caretaker of the hall?",)),
        ("What is the phone extension of the organiser of the trip?", ("Who is the organiser of the trip?",)),
        ("When did the manager of our warehouse retire?", ("Who is the manager of our warehouse?",)),
        (
            "When did the parish in which the guild Quillan Ford led takes root vote?",
            ("Which guild did Quillan Ford lead?", "In which parish does the guild Quillan Ford led take root?"),
        ),
        (
            "When was the ballad the sculptor credited with finding Ashton sang in 1990 banned?",
            (
                "Which sculptor was credited with finding Ashton?",
                "Which ballad did the sculptor credited with finding Ashton sing in 1990?",
            ),
        ),
        (
            "When was the abbey where Quillan Ford died and Ashton was buried founded?",
            ("Quillan Ford died and Ashton was buried in which abbey?",),
        ),
        (
            "How old is the scholar who, with the author of Copper Moon, visited Norland?",
            ("Who is the author of Copper Moon?", "Which scholar, with the author of Copper Moon, visited Norland?"),
        ),
        (
            "When did the parish that Quillan Ford and the man who settled Ashton visited in 1990 vote?",
            (
                "Who settled Ashton?",
                "Which parish did Quillan Ford and the man who settled Ashton visit in 1990?",
            ),
        ),
        (
            "Who wrote the ballad on which the museum the sculptor of Copper Moon led was modelled?",
            (
                "Who sculpted Copper Moon?",
                "Which museum did the sculptor of Copper Moon lead?",
                "On which ballad was the museum the sculptor of Copper Moon led modelled?",
            ),
        ),
        (
            "Who governs the province immediately north of the parish that outlawed Copper Moon?",
            (
                "Which parish outlawed Copper Moon?",
                "Which province is immediately north of the parish that outlawed Copper Moon?",
            ),
        ),
        ("Where does the host city of the Kell Games lie?", ("What is the host city of the Kell Games?",)),
        ("How tall is the oldest mill in Ashton?", ("What is the oldest mill in Ashton?",)),
        ("Who blessed Norland's patron saint?", ("What is the patron saint of Norland?",)),
        ("Who was the heir of Quillan Ford engaged to?", ("Who is the heir of Quillan Ford?",)),
        ("Who trained the first Mayor of Ashton?", ("Who is the first mayor of Ashton?",)),
        ("Who succeeded the CEO of Kell Motors?", ("Who is the CEO of Kell Motors?",)),
        ("How large is the city of Quillan Ford's birth?", ("In which city was Quillan Ford born?",)),
        ("When did Quillan Ford's former team fold?", ("What is the former team of Quillan Ford?",)),
        ("What is the motto of Quillan Ford's state of birth?", ("What is the state of birth of Quillan Ford?",)),
        ("Who organised the spring meeting in Ashton?", ()),
        ("Who dammed the river flowing through Ashton?", ("Which river flows through Ashton?",)),
        ("Who dammed the body of water next to Ashton?", ("Which body of water is next to Ashton?",)),
        ("Who leads the guild with Quillan Ford?", ()),
        ("Who leads the parish with Ashton as its seat?", ("Which parish has Ashton as its seat?",)),
        ("When did slavery end in the same state as Ashton?", ("In which state is Ashton located?",)),
        ("Who runs the only club larger than Kell Motors?", ("Which only club is larger than Kell Motors?",)),
        ("Where is the guild that outlawed Copper Moon?", ("Which guild outlawed Copper Moon?",)),
        ("In what county was Quillan Ford born?", ("In which city was Quillan Ford born?",)),
        ("Quillan Ford was raised in a city in what county?", ("Quillan Ford was raised in which city?",)),
        (
            "What is the capital of the parish the founder of Kell Motors held office in?",
            ("Who founded Kell Motors?", "Which parish did the founder of Kell Motors hold office in?"),
        ),
        (
            "When did the league that the parish where Quillan Ford died is part of join the union?",
            (
                "In which parish did Quillan Ford die?",
                "Which league is the parish where Quillan Ford died part of?",
            ),
        ),
        (
            "Who is the band that Quillan Ford sang for's founder married to?",
            ("Which band did Quillan Ford sing for?", "Who founded the band Quillan Ford sang for?"),
        ),
        (
            "Who led the guild that employs a drummer who visited Ashton?",
            ("Which drummer visited Ashton?", "Which guild employs the drummer who visited Ashton?"),
        ),
        (
            "Where is the mouth of the river that flooded Ashton?",
            ("Which river flooded Ashton?",),
        ),
        (
            "What is the tallest mill in the city that is the capital of Quillan Ford's country?",
            (
                "What country is Quillan Ford in?",
                "What is the capital of the country of Quillan Ford?",
                "Which city is the capital of the country of Quillan Ford?",
            ),
        ),
        (
            "Kell Games were held in a city. King Albert of that city ruled during a war that Norland entered when?",
            ("Kell Games were held in which city?", "King Albert of the city ruled during which war?"),
        ),
    ],
)
def test_what_is_compared_owned_or_unnamed_is_a_step_too(question: str, steps: tuple[str, ...]) -> None:
    assert sub_queries(question, parse(question))[:-1] == steps


@pytest.mark.parametrize(
    ("clause", "asked"),
    [
        ("the guild of Ashton originated in", "Which country did the guild of Ashton originate in?"),
        (
            "where the sculptor of Copper Moon holds office",
            "In which country does the sculptor of Copper Moon hold office?",
        ),
        ("in which Quillan Ford settled", "In which country did Quillan Ford settle?"),
        ("where Norland and Ashton are both rivers", "In which country are Norland and Ashton both rivers?"),
    ],
)
def test_clauses_are_asked_in_the_order_of_questions(clause: str, asked: str) -> None:
    question = f"What is the motto of the country {clause}?"
    assert asked in sub_queries(question, parse(question))


@pytest.mark.parametrize(
    "question",
    [
        "Who was the Norland president in 1950?",
        "Where is the Kell Motors headquarters?",
        "By whom is the hall Yarrow managed?",
        "Which god was the planet Norland named after?",
        "By how many cars does the ferry Clover exceed the ferry Jay?",
    ],
)
def test_what_a_name_already_tells_is_no_step(question: str) -> None:
    assert len(sub_queries(question, parse(question))) == 1
