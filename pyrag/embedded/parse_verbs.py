"""Forms of English verbs, by a list of the irregular ones and by their endings: past, participle, base."""

from __future__ import annotations

import re

from pyrag.embedded.wording import words

# base, past, participle (where it differs from the past)
_IRREGULAR = """
arise arose arisen;bear bore born;beat beat beaten;become became become;begin began begun;bend bent;bind bound;
bite bit bitten;blow blew blown;break broke broken;bring brought;build built;burn burnt;buy bought;cast cast;
catch caught;choose chose chosen;come came come;cost cost;cut cut;deal dealt;dig dug;draw drew drawn;
drink drank drunk;drive drove driven;eat ate eaten;fall fell fallen;feed fed;feel felt;fight fought;find found;
flee fled;fly flew flown;forbid forbade forbidden;forget forgot forgotten;freeze froze frozen;get got;
give gave given;go went gone;grow grew grown;hang hung;hear heard;hide hid hidden;hit hit;hold held;hurt hurt;
keep kept;know knew known;lay laid;lead led;learn learnt;leave left;lend lent;let let;lie lay lain;lose lost;
make made;mean meant;meet met;overcome overcame overcome;overthrow overthrew overthrown;pay paid;put put;read read;
ride rode ridden;ring rang rung;rise rose risen;run ran run;say said;see saw seen;seek sought;sell sold;send sent;
set set;shake shook shaken;shine shone;shoot shot;show showed shown;shut shut;sing sang sung;sink sank sunk;sit sat;
sleep slept;speak spoke spoken;spend spent;split split;spread spread;stand stood;steal stole stolen;stick stuck;
strike struck;swear swore sworn;swim swam swum;swing swung;take took taken;teach taught;tear tore torn;tell told;
think thought;throw threw thrown;undergo underwent undergone;understand understood;wake woke woken;wear wore worn;
win won;withdraw withdrew withdrawn;write wrote written
"""
_ROWS = [row.split() for row in " ".join(_IRREGULAR.split()).split(";")]
_BASE_OF = {form: row[0] for row in _ROWS for form in row[1:]}
_PASTS = frozenset(row[1] for row in _ROWS)
_PARTICIPLES = frozenset(row[-1] for row in _ROWS)
# Verbs whose base form a question may end a description with: "did [the firm that …] merge with"
_REGULAR = words(
    "abandon abolish absorb accept accuse achieve acquire act adapt add address adopt advance advise affect agree aim"
    " air allow amount announce answer appear apply appoint approach approve argue arrest arrive ascend ask assassinate"
    " assist associate assume attack attain attempt attend attract award ban base battle be believe belong border"
    " borrow broadcast call campaign cancel capture care carry cause cease celebrate change charge claim close coach"
    " collaborate collapse collect colonize combine command commit compare compete complete compose conclude conduct"
    " confirm connect conquer consider consist construct consult consume contain continue contribute control convert"
    " cooperate cover create criticize cross crown cultivate damage date debut decide declare decline decrease"
    " dedicate defeat defend define demand deny depart depend depict deploy derive describe design destroy determine"
    " develop die differ direct disappear discontinue discover discuss display dissolve divide divorce dominate donate"
    " double drop earn elect eliminate embrace emerge emigrate employ empty enable end endorse enforce engage enjoy"
    " enlist enroll ensure enter escape establish evolve exceed exchange execute exercise exist expand experience"
    " explain explore export express extend face fail favor feature finish fire fit flood flourish flow focus follow"
    " force form found fund gain generate govern graduate grant guard happen hate have help hire host house identify"
    " ignore immigrate implement import improve include incorporate increase influence inhabit inherit insist inspire"
    " install institute intend introduce invade invent invest invite involve issue join judge kill lack land last"
    " launch legalize like limit line link list live locate look love maintain manage manufacture march mark marry"
    " matter measure merge migrate move murder name need negotiate nominate notice number observe obtain occupy occur"
    " offer open operate oppose order organize originate oversee own participate pass peak perform permit persuade pick"
    " place plan play possess post practice praise predict prefer premiere prepare present preserve prevent produce"
    " promise promote propose protect protest prove provide publish pull purchase push qualify question quit raise rank"
    " reach realize rebel receive recognize recommend record recover reduce refer reform refuse regain reign reject"
    " relate release relocate rely remain remove rename render renounce repeal replace reply report represent request"
    " require research reside resign resist resolve respond rest result retain retire return reveal rule sack score"
    " secede secure seize separate serve settle sever share sign signal spawn specialize sponsor star start state stay"
    " stop study submit succeed suffer suggest supply support suppress surrender surround survive suspend switch talk"
    " target tend test threaten tie touch tour trade train transfer transform translate travel treat try turn unite"
    " use value vary view violate visit vote wage wait walk want watch weigh wish work"
)
_BASES = _REGULAR | frozenset(row[0] for row in _ROWS) | {"do"}
# Words in -ed that are no verbs, and nouns that a participle is spelled like
_NO_PASTS = words("red bed shed seed speed need breed bleed hundred sacred kindred creed reed deed embed indeed")


def is_past(word: str) -> bool:
    """Whether a word may be a finite past form."""
    return word in _PASTS or _ends_in_ed(word)


def is_participle(word: str) -> bool:
    return word in _PARTICIPLES or _ends_in_ed(word)


def is_base(word: str) -> bool:
    return word in _BASES


def is_present(word: str) -> bool:
    """Whether a word is the third person of a verb that is known: "hosts", "carries"."""
    return word.endswith("s") and bool(
        {word[:-1], word[:-2] if word.endswith("es") else "", word[:-3] + "y" if word.endswith("ies") else ""} & _BASES
    )


def base_of(verb: str) -> str:
    """The base form after "did", empty where the spelling does not tell: "wrote" gives "write"."""
    if verb in _BASE_OF:
        return _BASE_OF[verb]
    if is_present(verb):
        return next(form for form in (verb[:-1], verb[:-2], verb[:-3] + "y") if form in _BASES)
    if not _ends_in_ed(verb):
        return ""
    if verb.endswith("ied"):
        return verb[:-3] + "y"
    stem = verb[:-2]
    doubled = stem[:-1] if len(stem) > 3 and stem[-1:] == stem[-2:-1] else ""
    known = [form for form in (verb[:-1], stem, doubled) if form in _BASES]
    if known:
        return known[0]
    if doubled and stem[-1] not in "slfz":
        return doubled
    return verb[:-1] if re.search(r"(?:[vcgsuz]|[^aeiou][au]t|[aeiou]r)$", stem) else stem


def _ends_in_ed(word: str) -> bool:
    return len(word) > 3 and word.endswith("ed") and word.isalpha() and word not in _NO_PASTS
