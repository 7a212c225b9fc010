"""Wordings of questions that ask for a relation, from plain to clumsy, for training only.

`{}` is replaced by the subject. Each relation has several wordings, so that the reader learns the relation, not a
sentence.
"""

# ruff: noqa: E501  tables of patterns read better one entry a line

from __future__ import annotations

import random
import re

WORDINGS: dict[str, tuple[str, ...]] = {
    "director": (
        "Who directed {}?", "Who is the director of {}?", "Who is the director of the film {}?", "{} was directed by whom?",
        "What is the name of the director of {}?", "Which director made {}?", "who directed the movie {}", "The director of {} is who?",
        "Who was the director of {}?",
    ),
    "screenwriter": ("Who wrote {}?", "Who is the screenwriter of {}?", "Who wrote the screenplay of {}?", "Who is the writer of the film {}?"),
    "producer": ("Who produced {}?", "Who is the producer of {}?", "Who was the producer of the film {}?"),
    "composer": (
        "Who composed the music of {}?", "Who is the composer of {}?", "Who composed {}?", "Who wrote the music for {}?",
        "Who is the composer of the film {}?", "Who composed the music for {}?", "Who is the composer of the song {}?",
    ),
    "performer": (
        "Who performed {}?", "Who is the performer of {}?", "Who is the performer of the song {}?", "Who sang {}?", "Which band recorded {}?",
        "Who recorded the album {}?", "{} was performed by whom?", "What is the name of the performer of {}?", "Who is the singer of {}?",
        "Which artist released {}?",
    ),
    "author": ("Who wrote {}?", "Who is the author of {}?", "Who is the writer of {}?", "Who was the author of {}?", "{} was written by whom?"),
    "cast": ("Who starred in {}?", "Who is a cast member of {}?", "Who is the star of {}?", "Which actor starred in {}?"),
    "country of citizenship": (
        "What is the nationality of {}?", "What nationality is {}?", "What is {}'s nationality?", "What country is {} from?",
        "Which country is {} from?", "What is the country of citizenship of {}?", "{} is a citizen of which country?", "What was {}'s country of citizenship?",
        "Where is {} from?",
    ),
    "date of birth": (
        "When was {} born?", "What is the date of birth of {}?", "What is {}'s date of birth?", "When is {}'s birthday?", "On what date was {} born?",
        "What is the birth date of {}?", "when was {} born", "In what year was {} born?", "What was the date of {}'s birth?",
    ),
    "date of death": (
        "When did {} die?", "What is the date of death of {}?", "What is {}'s date of death?", "On what date did {} die?", "when did {} die",
        "In what year did {} die?", "When did {} pass away?", "What is the death date of {}?",
    ),
    "place of birth": (
        "Where was {} born?", "What is the place of birth of {}?", "In what city was {} born?", "What is {}'s place of birth?", "What is the birthplace of {}?",
        "What was {}'s city of birth?", "Which city was {} born in?", "In which town was {} born?", "where was {} born", "{} was born in which place?",
    ),
    "place of death": (
        "Where did {} die?", "What is the place of death of {}?", "In what city did {} die?", "What is {}'s place of death?", "At what location did {} die?",
        "Where did {} pass away?", "Which city did {} die in?",
    ),
    "place of burial": ("Where was {} buried?", "What is the place of burial of {}?", "Where is {} buried?"),
    "cause of death": ("What was the cause of death of {}?", "How did {} die?", "What is the cause of death of {}?", "What did {} die of?", "Why did {} die?"),
    "occupation": (
        "What is {}'s occupation?", "What is the occupation of {}?", "What was {}'s profession?", "What does {} do for a living?", "What is the profession of {}?",
        "What was the occupation of {}?", "What kind of work does {} do?",
    ),
    "country": (
        "In which country is {} located?", "What country is {} in?", "Which country is {} located in?", "In what country is {}?", "What is the country of {}?",
        "{} is located in which country?", "Where is {} located?", "What country does {} belong to?",
    ),
    "state": ("Which state is {} located in?", "What state is {} in?", "In which state is {} located?", "What is the name of the state where {} is located?"),
    "county": ("What county is {} in?", "Which county is {} located in?", "In what county is {} located?"),
    "country of origin": (
        "What is the country of origin of {}?", "Which country is {} from?", "What country is {} from?", "From which country does {} come?",
        "In which country was {} made?", "What is the nationality of {}?", "Which country is the film {} from?", "Which was the country for {}?",
    ),
    "publication date": (
        "When was {} released?", "What is the publication date of {}?", "What is the release date of {}?", "When did {} come out?",
        "In what year was {} released?", "When was the film {} released?", "What year did {} come out?", "When was {} published?",
    ),
    "father": ("Who is the father of {}?", "Who was {}'s father?", "Who is {}'s father?", "What is the name of {}'s father?", "Who was the father of {}?"),
    "mother": ("Who is the mother of {}?", "Who was {}'s mother?", "Who is {}'s mother?", "What is the name of {}'s mother?"),
    "spouse": (
        "Who is the spouse of {}?", "Who did {} marry?", "Who was {}'s spouse?", "Who is {} married to?", "Who was {}'s husband?", "Who is the wife of {}?",
        "Who is {}'s wife?", "Who is the husband of {}?", "Who was the spouse of {}?",
    ),
    "child": ("Who is the child of {}?", "Who is {}'s child?", "Who is the son of {}?", "Who is the daughter of {}?"),
    "sibling": ("Who is the sibling of {}?", "Who is {}'s sibling?", "Who is the brother of {}?", "Who is {}'s sister?"),
    "award received": ("Which award did {} receive?", "What award did {} win?", "What is the award received by {}?", "What prize was {} awarded?"),
    "educated at": (
        "Where was {} educated?", "Where did {} study?", "Where did {} graduate from?", "What school did {} attend?", "Which university did {} attend?",
        "What is the alma mater of {}?",
    ),
    "employer": ("Where does {} work?", "Who is the employer of {}?", "Where did {} work?", "What is {}'s employer?"),
    "founded by": ("Who founded {}?", "Who is the founder of {}?", "Who established {}?", "{} was founded by whom?"),
    "publisher": ("Who is the publisher of {}?", "Who published {}?", "Which company published {}?"),
    "record label": ("What is the record label of {}?", "Which label released {}?", "What record label is {} on?", "What label was responsible for {}?"),
    "inception": ("When was {} founded?", "When was {} established?", "What year was {} formed?", "What is the inception of {}?", "When was {} created?"),
    "headquarters": ("Where is {} based?", "Where is the headquarters of {}?", "What is the headquarters location of {}?", "In what city is {} headquartered?"),
    "population": ("What is the population of {}?", "How many people live in {}?", "What was the population of {}?"),
    "team": ("Which team does {} play for?", "What team is {} on?", "What is the member of sports team of {}?", "Which club does {} play for?"),
    "language": ("What language is {} in?", "What is the original language of {}?", "In what language is the film {}?"),
    "genre": ("What is the genre of {}?", "What genre is {}?", "What kind of film is {}?"),
}  # fmt: skip

# Patterns of words that a passage needs to state a relation. If no word occurs, "no answer" is a safe label.
CUES: dict[str, str] = {
    "director": r"direct|film|movie|\bby\b|made|helm",
    "composer": r"music|compos|scor|song|sound|\bby\b|written",
    "producer": r"produc|\bby\b|made",
    "place of birth": r"born|birth|native|raised|from|\bin\b",
    "place of death": r"die|death|dead|kill|pass|buried|murder|assass|executed|\d{4}\s?[)–-]",
    "cause of death": r"die|death|dead|kill|pass|murder|assass|executed|suicide|shot|cancer|disease|illness|attack|accident|crash",
    "date of death": r"die|death|dead|kill|pass|murder|assass|executed|[–-]",
    "date of birth": r"born|birth|\d{4}",
    "father": r"son\b|daughter|father|parent|born to|child|family|brother|sister|heir",
    "mother": r"son\b|daughter|mother|parent|born to|child|family|brother|sister|heir",
    "spouse": r"marri|wife|husband|spouse|wed|consort|widow|partner|couple|divorc",
    "child": r"son\b|sons\b|daughter|father|mother|parent|child|family|heir",
    "sibling": r"brother|sister|sibling|twin|family",
    "award received": r"award|prize|won|medal|recei|hono|nominat|recipient|inducted|laureate|winner",
    "educated at": r"educat|stud|universit|college|school|graduat|degree|alma|academ|institute",
    "founded by": r"found|establish|creat|start|launch|form|by\b",
    "record label": r"record|label|releas|sign",
    "team": r"play|team|club|f\.?c|league|coach|for\b|manager",
    "population": r"population|inhabitant|people|resident|census",
    "place of burial": r"buri|inter|cemeter|grave|tomb|entomb|rest",
    "headquarters": r"headquarter|based|office|located|\bin\b",
}


def wordings(relation: str) -> tuple[str, ...]:
    """Return all wordings of a relation, plainest first. If it has none, the relation's name is the only wording."""
    by_name = f"What is the {relation} of {{}}?", f"What is {{}}'s {relation}?", f"{{}}: {relation}?"
    return WORDINGS.get(relation, by_name)


def draw_questions(relation: str, subject: str, rng: random.Random, count: int = 1) -> list[str]:
    """Return different questions for a relation.

    Args:
        relation: Name of the relation.
        subject: Subject of the questions.
        rng: Random generator for wordings and small flaws.
        count: Maximum number of questions. There may be fewer if the relation has few wordings.
    """
    known = wordings(relation)
    return [_roughen(each.format(subject), rng) for each in rng.sample(known, min(count, len(known)))]


def _roughen(question: str, rng: random.Random) -> str:
    """Return a question with small flaws: sometimes without its question mark, or without a qualifier in brackets."""
    if rng.random() < 0.1:
        question = question.rstrip("?")
    if rng.random() < 0.5:
        question = re.sub(r"\s*\([^)]*\)", "", question)
    return question


def is_silent(relation: str, text: str) -> bool:
    """Return whether a text certainly does not mention a relation.

    Args:
        relation: Name of the relation. A relation that is not in `CUES` is never silent.
        text: Text of a passage.
    """
    return relation in CUES and not re.search(CUES[relation], text, re.IGNORECASE)
