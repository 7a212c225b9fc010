"""Forms of English verbs (past, participle, base), from a list of irregular verbs and from word endings."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.word_classes import AUXILIARIES

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
_PAST_OF = {row[-1]: row[1] for row in _ROWS}
_PARTICIPLE_OF = {row[0]: row[-1] for row in _ROWS}
_PASTS = frozenset(row[1] for row in _ROWS)
_PARTICIPLES = frozenset(row[-1] for row in _ROWS)
# Verbs whose base form may follow a description: "did [the firm that …] merge with"
_REGULAR = words(
    "abandon abolish absorb accept accuse achieve acknowledge acquire act adapt add address adhere admire admit adopt"
    " advance advise advocate affect agree aim air align allow alter amount announce answer apologize appear apply"
    " appoint approach approve argue arrest arrive ascend ask aspire assassinate assert assign assist associate assume"
    " attack attain attempt attend attract attribute authorize avoid award ban base battle be believe belong bestow"
    " blame blend boast border borrow broadcast bury call campaign cancel capture care carry cause cease celebrate"
    " change characterize charge chase circulate cite claim clash classify climb close coach coin collaborate collapse"
    " collect collide colonize combine command commemorate commission commit compare compete complain complete compose"
    " concede conceive conclude condemn conduct confer confirm confront connect conquer consider consist consolidate"
    " construct construe consult consume contain continue contribute control convert convince cooperate cover crash"
    " create criticize cross crown cultivate damage date debut decide declare decline decrease decree dedicate deem"
    " defeat defend define defy deliver demand demonstrate deny depart depend depict deploy depose derive descend"
    " describe design destroy deteriorate determine develop devise die differ direct disagree disappear disband"
    " discontinue discover discuss dislike dismantle dismiss displace display dissolve distinguish dive divide divorce"
    " dominate donate double drop dub dwell earn elect eliminate embark embrace emerge emigrate emphasize employ empty"
    " enable enact encompass encounter encourage end endorse enforce engage enjoy enlist enroll ensure enter entitle"
    " erupt escape establish estimate evacuate evolve exceed excel exchange execute exercise exist expand expect expel"
    " experience explain exploit explore export express extend face fail favor feature finish fire fit flood flourish"
    " flow focus follow force form found fund gain gather generate govern graduate grant guard hail halt hamper handle"
    " happen harm hate have help hire honor hope host house identify ignite ignore immigrate impact implement import"
    " impose imprison improve include incorporate increase indicate influence inhabit inherit initiate injure insist"
    " inspire install institute instruct intend interact interpret interrupt intervene introduce invade invent invest"
    " investigate invite involve isolate issue join judge kill lack land last launch legalize like limit line link"
    " list live lobby locate look love maintain manage mandate manipulate manufacture march mark marry matter measure"
    " mention merge migrate miss mobilize move murder name nationalize need neglect negotiate nominate notice number"
    " observe obtain occupy occur offer open operate oppose orbit order organize originate oust outlaw outnumber"
    " overlook oversee overtake owe own participate pass peak perceive perform permit persecute persuade pick place"
    " plan play plead portray pose possess post practice praise precede predict prefer premiere prepare present"
    " preserve prevent proclaim produce prohibit promise promote prompt propose prosper protect protest prove provide"
    " publish pull purchase push qualify question quit quote raid raise rally rank ratify reach react realize rebel"
    " receive recognize recommend reconquer record recover recruit reduce refer reform refuse regain regard regulate"
    " reign reinforce reject relate release relocate rely remain remove rename render renounce repeal replace reply"
    " report represent request require research resemble reside resign resist resolve respond rest result resume"
    " retain retire retreat return reveal revise revive rob rule sack sacrifice sail save score scrap secede secure"
    " seize select separate serve settle sever share shift shrink sign signal spawn specialize specify sponsor"
    " stabilize standardize star start state stay stop strengthen strive study submit subscribe succeed sue suffer"
    " suggest supply support suppress surrender surround survive suspend sustain swap switch talk target tend"
    " terminate test testify theorize threaten thrive tie touch tour trade train transfer transform translate transmit"
    " travel treat triumph try turn undertake unify unite unveil urge use value vanish vary veto view violate visit"
    " vote vow wage wait walk want warn watch weaken weigh welcome wish work yield head chair captain coauthor voice"
    " narrate script skate front anchor pen direct edit manufacture inspire employ educate headline film star chronicle"
)
_BASES = _REGULAR | frozenset(row[0] for row in _ROWS) | {"do"}
FOUNDED = words("""
    formed founded established created started built opened launched incorporated constituted organised organized begun
    began completed
""")  # forms of verbs that begin the life of an organisation or building
# Words in "-ed" that are not past forms
_NO_PASTS = _BASES | words(
    "red bed shed seed speed breed bleed hundred sacred kindred creed reed deed embed indeed proceed"
)


def is_past(word: str) -> bool:
    """Return whether a word may be a finite past form."""
    return word in _PASTS or _ends_in_ed(word)


def is_participle(word: str) -> bool:
    """Return whether a word may be a past participle."""
    return word in _PARTICIPLES or _ends_in_ed(word)


def is_base(word: str) -> bool:
    """Return whether a word is the base form of a known verb."""
    return word in _BASES or (word.startswith("re") and word[2:] in _BASES)


def is_present(word: str) -> bool:
    """Return whether a word is the third person of a known verb, such as "hosts" or "carries"."""
    return word.endswith("s") and bool(
        {word[:-1], word[:-2] if word.endswith("es") else "", word[:-3] + "y" if word.endswith("ies") else ""} & _BASES
    )


def is_finite(word: str) -> bool:
    """Return whether a word may be a finite verb: an auxiliary, a past form or the third person of a known verb."""
    return word in AUXILIARIES or is_past(word) or is_present(word)


def base_of(verb: str) -> str:
    """Return the base form of a verb, as "did" needs it; empty if the spelling does not show it."""
    if verb in _BASE_OF:
        return _BASE_OF[verb]
    if is_present(verb):
        return next(form for form in (verb[:-1], verb[:-2], verb[:-3] + "y") if form in _BASES)
    if not _ends_in_ed(verb):
        return ""
    if verb.endswith("ied"):
        return verb[:-1] if len(verb) < 5 else verb[:-3] + "y"  # "died", "carried"
    stem = verb[:-2]
    doubled = stem[:-1] if len(stem) > 3 and stem[-1:] == stem[-2:-1] else ""
    known = [form for form in (verb[:-1], stem, doubled) if form in _BASES]
    if known:
        return known[0]
    if doubled and stem[-1] not in "slfz":
        return doubled
    return verb[:-1] if re.search(r"(?:[vcgsuz]|[^aeiou][au]t|[aeiou]r)$", stem) else stem


def past_of(participle: str) -> str:
    """Return the past form of a verb: "wrote" for "written", and "signed" for "signed"."""
    return _PAST_OF.get(participle, participle)


def participle_of(base: str) -> str:
    """Return the past participle of a verb by its base form: "written" for "write", and "signed" for "sign"."""
    return _PARTICIPLE_OF.get(base) or (f"{base}d" if base.endswith("e") else f"{base}ed")


def present_of(gerund: str) -> str:
    """Return the third person of a known verb by its "-ing" form, such as "contains"; empty for other words."""
    stem = gerund.removesuffix("ing")
    base = next((form for form in (f"{stem}e", stem, stem[:-1]) if form in _BASES), "")
    if not base or stem == gerund:
        return ""
    if base == "have":
        return "has"
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ies"
    return f"{base}es" if re.search(r"(?:s|x|z|ch|sh|o)$", base) else f"{base}s"


def _ends_in_ed(word: str) -> bool:
    """Return whether a word is spelled like a regular past form."""
    return len(word) > 3 and word.endswith("ed") and word.isalpha() and word not in _NO_PASTS
