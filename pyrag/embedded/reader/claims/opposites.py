"""Opposites, synonyms and denials: tables of words, and functions that look words up in them."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.measures import ORDINALS
from pyrag.embedded.lexicon.times import MONTHS, SEASONS
from pyrag.embedded.lexicon.verbs import base_of, is_base, present_of
from pyrag.embedded.words import stem

# A pair of groups per line: each word on the left is an opposite of each word on the right.
_PAIRS = """
accept accepted approve approved grant granted pass passed carry carried adopt adopted agree agreed endorse upheld uphold |
    reject rejected refuse refused decline declined deny denied defeat defeated veto vetoed dismiss dismissed overturn
allow allowed allows permit permitted permits authorise authorised authorize authorized legal lawful welcome |
    forbid forbids forbidden prohibit prohibited prohibits ban banned bans disallow disallowed block blocked illegal
accept accepted approve approved | withdraw withdrawn drop dropped shelve shelved
open opens opened | close closes closed shut
on | off
enable enables enabled activate activated | disable disables disabled deactivate deactivated off
include includes included including | exclude excludes excluded excluding
win wins won | lose loses lost
start starts started begin begins began begun open opens opened launch launched | end ends ended stop stops stopped finish
    finished finishes cease ceased conclude concluded
alive | dead died deceased late
join joins joined enter entered | leave leaves left quit resign resigned
rise rises rose risen increase increases increased grow grows grew grown climb gain gained raise raised |
    fall falls fell fallen decrease decreases decreased decline declined drop drops dropped shrink shrank shrunk cut
    reduce reduced sink sank lower lowered
buy buys bought acquire acquired purchase purchased | sell sells sold
arrive arrives arrived | depart departs departed leave leaves left
above over | below under beneath
north northern northwards | south southern southwards
east eastern | west western
upper top | lower bottom
left | right
inside indoors indoor within | outside outdoors outdoor
first | last final
large larger largest big bigger biggest great greater greatest | small smaller smallest little tiny
more most | less least fewer fewest
long longer longest | short shorter shortest brief
high higher highest tall taller tallest | low lower lowest short shorter shortest
deep deeper deepest | shallow shallower shallowest
heavy heavier heaviest | light lighter lightest
wide wider widest broad broader | narrow narrower narrowest
thick thicker | thin thinner
fast faster fastest quick quicker quickest | slow slower slowest
early earlier earliest | late later latest
old older oldest elder | young younger youngest new newer newest
expensive pricier dear costly dearer | cheap cheaper cheapest inexpensive
loud louder loudest noisy noisier | quiet quieter quietest silent
hot hotter hottest warm warmer warmest | cold colder coldest cool cooler
strong stronger strongest | weak weaker weakest
steep steeper steepest | gentle gentler flat flatter
easy easier simple simpler | hard harder difficult
hard harder | soft softer
bright brighter | dark darker dim
rich richer wealthy | poor poorer
near nearer close closer | far farther further
good better best | bad worse worst poor
full | empty
public | private
free | paid charge charged
safe | unsafe dangerous hazardous
true | false untrue
succeed succeeded successful | fail failed unsuccessful
pass passed | fail failed
removable detachable replaceable | fixed permanent built-in soldered
visible | hidden invisible
possible | impossible
compatible | incompatible
import imports imported | export exports exported
lend lends lent | borrow borrows borrowed
love loves loved like likes liked | hate hates hated dislike dislikes disliked
appear appears appeared | disappear disappears disappeared vanish vanished
connect connected connects | disconnect disconnected disconnects
required mandatory compulsory obligatory necessary needed | optional voluntary unnecessary
male man | female woman
boy son brother father husband | girl daughter sister mother wife
wet | dry
odd | even
guilty convicted | innocent acquitted
complete completed finished done ready | incomplete unfinished pending outstanding
confirmed confirm confirms | denied deny denies refuted unconfirmed
keep kept keeps retain retained | abandon abandoned drop dropped scrap scrapped remove removed discard discarded
hire hired appointed employ employed recruited | fire fired sacked dismissed
add added adds | remove removed removes delete deleted drop dropped drops
support supports supported | oppose opposes opposed
agree agreed agrees | disagree disagreed disagrees
present attended attend attends | absent missed miss missing excused apologies
received receive arrived | missing outstanding lost
married | single unmarried divorced
positive | negative
vegetarian vegan | meat
internal | external
online | offline
upgrade upgraded | downgrade downgraded
advance advanced | retreat retreated
encrypted | unencrypted plain
manual manually | automatic automatically
stable | unstable experimental
deprecated obsolete | current
available stock | unavailable sold-out
sunny | rainy cloudy
profit profitable profits | loss losses unprofitable
odds-on favourite | outsider
postponed delayed postpone delay | cancelled canceled cancel
"""
# A group of synonyms per line, for words whose stems differ.
_ALIKE = """
reject rejected refuse refused decline declined deny denied defeat defeated veto vetoed dismiss dismissed turned-down voted-down
accept accepted approve approved grant granted pass passed carry carried adopt adopted agreed endorse endorsed
permit permitted allow allowed authorised authorized
forbid forbidden prohibit prohibited ban banned disallowed
cost costs price priced
found founded establish established start started create created launch launched form formed begin set-up co-founded cofounded
    founder
win won award awarded receive received go went beat defeated
maintain maintains maintained maintainer
organise organised organize organized host hosted hold held
take-over follow followed replace replaced succeed succeeded
happen happened occur occurred place
move moved relocate relocated
reduce reduced cut lower lowered decrease decreased
raise raised increase increased rise rose
earn earns paid pay pays salary
report reports reported
order orders ordered
deliver delivers delivered delivery
weigh weighs weight
buy bought acquire acquired purchase purchased
begin start started open opened launch launched
end finish finished conclude concluded
die dead died deceased
write written author authored
locate lie lies situated located
big large great
little small
make made produce produced manufacture manufactured
choose chosen elect elected select selected
appoint appointed named
quit leave left resign resigned
close closed shut
cancel cancelled canceled called-off
postpone postponed delay delayed deferred moved put-off
house home
car automobile vehicle
doctor physician
film movie
company firm business
headquarters based headquartered
licence licensed license licences
member members belong belongs
lead leader head chair chairs chaired leads
use uses used employ employs
run runs work works operate operates
need needs require requires required
support supports supported
marry married wedding
live lives reside resides
speak speaks spoken
teach teaches taught
build built construct constructed
receive received get got
win won
name named called
help helps assist
large larger big bigger
"""
# Words that deny the verb or noun after them: an odd number of them inverts the meaning of a sentence.
DENIALS = words("""
    not never no nobody none nothing neither nor without cannot hardly scarcely barely lacks lack lacked lacking fails fail
    failed failing unable refuses refused refuse declined ceases ceased stopped stops stop drops dropped drop
    discontinued prevents prevented avoids avoided n't nowhere instead except denies denied
""")
# Words for a state that has ended: the answer to "still" is no.
OVER = words("""
    left leave leaves resigned retired closed shut sold stopped died dead deceased scrapped discontinued former formerly
    ended ends replaced expired cancelled canceled removed until demolished dissolved abandoned withdrawn stepped moved
    sank sunk destroyed dismissed ex ex-member quit abolished merged deprecated removed dropped ceased finished
    transferred departed previously
""")
# Classes of words that exclude each other.
_EXCLUSIVE = (
    words("monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays saturday saturdays sunday"
          " sundays weekend weekends"),
    words(MONTHS.lower().replace("|", " ")),
    words("red green blue yellow black white grey gray orange purple brown pink silver golden"),
    SEASONS,
    words("morning afternoon evening night noon midnight"),
    frozenset(ORDINALS),
    words("gold silver bronze"),
    words("steel aluminium aluminum wood wooden plastic carbon titanium copper iron glass concrete leather cotton wool"),
    words("daily weekly monthly quarterly yearly annual annually hourly"),
    words("catholic protestant orthodox muslim jewish hindu buddhist"),
    words("violin violinist cello cellist piano pianist flute flautist guitar guitarist drummer trumpet"),
    words("kg g km m cm mm euros dollars pounds"),
)  # fmt: skip

# Phrasal verbs, each with the base form and past of a single verb of the same meaning.
_PHRASAL_VERBS = (
    (r"turn(?:s|ed)? down|vot(?:es?|ed) down|thrown? out|threw out|rul(?:es?|ed) out", "reject", "rejected"),
    (r"vot(?:es?|ed|ing) against", "oppose", "opposed"),
    (r"vot(?:es?|ed|ing) (?:for|in favou?r of)", "support", "supported"),
    (r"call(?:s|ed)? off", "cancel", "cancelled"),
    (r"put(?:s)? off|push(?:es|ed)? back", "postpone", "postponed"),
    (r"sign(?:s|ed)? off(?: on)?|wav(?:es|ed) through", "approve", "approved"),
    (r"shut(?:s)? down|clos(?:es|ed) down", "close", "closed"),
    (r"t(?:akes?|ook|aken) over", "acquire", "acquired"),
    (r"step(?:s|ped)? down|stood down", "resign", "resigned"),
    (r"pass(?:es|ed)? away", "die", "died"),
    (r"g(?:ave|iven|ives?) up", "abandon", "abandoned"),
    (r"set(?:s)? up", "found", "founded"),
    (r"(?:switch|turn)(?:es|s|ed)? (?=off|on)", "", ""),
    (r"(?<=is )(?:still )?awaited|(?<=are )(?:still )?awaited", "missing", "missing"),
    (r"out of (?:service|order|use)", "closed", "closed"),
)


def plain_verbs(text: str) -> str:
    """Replace phrasal verbs by single verbs: "turned down" becomes "rejected"."""
    for pattern, base, past in _PHRASAL_VERBS:
        for match in reversed(list(re.finditer(rf"\b(?:{pattern})(?:\b|(?<= ))", text, re.IGNORECASE))):
            is_base_form = is_base(match[0].split()[0].lower()) and past != "postponed"  # "put off" is also the past
            text = f"{text[: match.start()]}{base if is_base_form else past}{text[match.end() :]}"
    return text


def _rows(text: str) -> list[str]:
    """Return the rows of a table, with continuation lines joined."""
    joined = text.replace("|\n    ", "| ").replace("\n    ", " ")
    return [line for line in joined.strip().splitlines() if line.strip()]


def _stems(text: str) -> frozenset[str]:
    return frozenset(root(word) for word in text.split())


@lru_cache(maxsize=1)
def _opposites() -> dict[str, frozenset[str]]:
    """Return the opposites of each root in the table."""
    table: dict[str, set[str]] = {}
    for row in _rows(_PAIRS):
        left, right = (_stems(side) for side in row.split("|"))
        for stems, opposites in ((left - right, right - left), (right - left, left - right)):
            for word_stem in stems:
                table.setdefault(word_stem, set()).update(opposites)
    return {key: frozenset(value) for key, value in table.items()}


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, frozenset[str]]:
    """Return the synonyms of each root in the table, including the root itself."""
    table: dict[str, set[str]] = {}
    for row in _rows(_ALIKE):
        group = _stems(row)
        for word_stem in group:
            table.setdefault(word_stem, set()).update(group)
    return {key: frozenset(value) for key, value in table.items()}


@lru_cache(maxsize=1 << 14)
def root(word: str) -> str:
    """Return the stem of a word's base form: "succeed" for "succeeds" and "succeeded"."""
    if word.endswith("eed"):
        return word
    base = base_of(present_of(word) if word.endswith("ing") else word) or word
    return base if is_base(base) else stem(base)


def are_opposite(first: str, second: str) -> bool:
    """Return whether two words are opposites, according to the table or by a prefix as in "paid" and "unpaid".

    Args:
        first: Word in lower case.
        second: Word in lower case.
    """
    if root(second) in _opposites().get(root(first), ()):
        return True
    return any(
        len(short) > 3
        and long in {f"{prefix}{short}" for prefix in ("un", "in", "im", "ir", "non", "non-", "dis", "mis")}
        for short, long in ((first, second), (second, first), (root(first), root(second)), (root(second), root(first)))
    )


def are_alike(first: str, second: str) -> bool:
    """Return whether two words have the same stem or are synonyms.

    Args:
        first: Word in lower case.
        second: Word in lower case.
    """
    first_root, second_root = root(first), root(second)
    if first.removesuffix("s") == second.removesuffix("s"):
        return True
    return (
        first_root == second_root
        or second_root in _synonyms().get(first_root, ())
        or (len(stem(first)) > 3 and stem(first) == stem(second))
    )


def is_among(word: str, others: Iterable[str]) -> bool:
    """Return whether a word is like any of some words; see `are_alike`.

    Args:
        word: Word in lower case.
        others: Words in lower case.
    """
    return any(are_alike(word, other) for other in others)


def are_alternatives(first: str, second: str) -> bool:
    """Return whether two words are different members of a class, such as two days of the week.

    Args:
        first: Word in lower case.
        second: Word in lower case.
    """
    if are_alike(first, second):
        return False
    return any(first in group and second in group for group in _EXCLUSIVE)


def has_opposite(word: str) -> bool:
    """Return whether the table has an opposite of a word."""
    return root(word) in _opposites()
