"""The relations that questions ask about: one table from a relation to its wordings, as data.

The names follow Wikidata where it has one. `nouns` are what stands in "the NOUN of X" and "X's NOUN"; `verbs` are
past forms as in "who VERB X" and "X was VERB by"; `forms` are further wordings of a whole question, as patterns
around `{x}`. `question` and `query` are how pyrag itself asks and searches. No parsing happens here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerType = Literal["person", "place", "country", "date", "organisation", "work", "number", "thing"]


@dataclass(frozen=True, slots=True)
class Relation:
    """`domain` is what X is, as far as it matters; `variable` what a program calls the value."""

    name: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    question: str
    answer_type: AnswerType
    query: str
    domain: Literal["person", "work", "place", "any"] = "any"
    forms: tuple[str, ...] = ()
    variable: str = ""

    def ask(self, x: str) -> str:
        return self.question.replace("{x}", x)


_WHEN = r"(?:when|(?:in |on )?(?:what|which) (?:year|date|day))"
_WHERE = (
    r"(?:where|(?:in |at )?(?:what|which) (?:place|location|city|town|village|country|state|county|province|region)"
    r"(?: or \w+)?)"
)
_WAS = r"(?:is|was|are|were)"
_DID = r"(?:did|does|do)"


def _r(
    name: str,
    nouns: str,
    *,
    ask: str,
    find: str,
    verbs: str = "",
    answer: AnswerType = "person",
    of: Literal["person", "work", "place", "any"] = "any",
    forms: tuple[str, ...] = (),
    variable: str = "",
) -> Relation:
    """A row of the table; nouns and verbs are separated by bars, forms may hold {when}, {where}, {was} and {did}."""
    spelled = tuple(
        form.replace("{when}", _WHEN).replace("{where}", _WHERE).replace("{was}", _WAS).replace("{did}", _DID)
        for form in forms
    )
    words = tuple(nouns.split("|")) if nouns else (), tuple(verbs.split("|")) if verbs else ()
    return Relation(name, *words, ask, answer, find, of, spelled, variable)


# fmt: off
_MAKERS = (
    _r("director", "director|film director|movie director|main director|filmmaker", verbs="directed",
       ask="Who directed {x}?", find="{x} director directed by", of="work"),
    _r("screenwriter", "screenwriter|scriptwriter|screenplay writer", verbs="wrote the screenplay of",
       ask="Who wrote the screenplay of {x}?", find="{x} screenwriter wrote the screenplay of by", of="work"),
    _r("producer", "producer|film producer|record producer", verbs="produced", ask="Who produced {x}?",
       find="{x} producer produced by", of="work"),
    _r("composer", "composer|music composer|film composer", verbs="composed|scored", ask="Who composed {x}?",
       find="{x} composer music", of="work"),
    _r("lyricist", "lyricist|lyrics writer", verbs="wrote the lyrics of", ask="Who wrote the lyrics of {x}?",
       find="{x} lyricist lyrics", of="work"),
    _r("performer", "performer|performers|singer|original singer|recording artist|artist|vocalist",
       verbs="performed|sang|sung|recorded", ask="Who is the performer of {x}?", find="{x} song by", of="work"),
    _r("songwriter", "songwriter|song writer", verbs="wrote the song", ask="Who wrote the song {x}?",
       find="{x} song written by", of="work"),
    _r("author", "author|writer|novelist|playwright", verbs="wrote|written|authored|penned",
       ask="Who is the author of {x}?", find="{x} author written by", of="work"),
    _r("editor", "editor|film editor", verbs="edited", ask="Who edited {x}?", find="{x} editor edited by",
       of="work"),
    _r("creator", "creator|inventor|designer|developer|discoverer",
        verbs="created|invented|designed|developed|discovered",
       ask="Who created {x}?", find="{x} creator created by", of="work"),
    _r("architect", "architect", verbs="designed the building", ask="Who designed the building {x}?",
       find="{x} architect designed", of="work"),
    _r("cinematographer", "cinematographer|director of photography", verbs="photographed",
       ask="Who photographed {x}?", find="{x} cinematographer photographed by", of="work"),
    _r("presenter", "presenter|host", verbs="presented|hosted", ask="Who presented {x}?",
       find="{x} presenter presented by", of="work"),
    _r("painter", "painter|sculptor", verbs="painted|sculpted", ask="Who painted {x}?", find="{x} painted by",
       of="work"),
)
_KIN = (
    _r("spouse", "spouse|wife|husband|consort|partner|first wife|second wife|first husband|second husband|ex-husband|"
       "ex-wife|widow",
       ask="Who is the spouse of {x}?", find="{x} married wife husband", of="person",
       forms=("who(?:m)? (?:is|was) {x} married to", "who(?:m)? {did} {x} marry", "who married {x}")),
    _r("father", "father|dad", ask="Who is the father of {x}?", find="{x} son daughter of father", of="person"),
    _r("mother", "mother|mom|mum", ask="Who is the mother of {x}?", find="{x} mother born to", of="person"),
    _r("child", "child|children|son|daughter|sons|daughters|kid|kids", ask="Who is the child of {x}?",
       find="{x} children son", of="person"),
    _r("sibling", "sibling|siblings|brother|sister|brothers|sisters", ask="Who is the sibling of {x}?",
       find="{x} brother sister", of="person"),
    _r("relative", "relative|cousin|nephew|niece", ask="Who is the relative of {x}?",
       find="{x} cousin nephew relative", of="person"),
)
_LIFE = (
    _r("date of birth", "date of birth|birth date|birthdate|birthday|year of birth|birth year",
       ask="When was {x} born?", find="{x} born", answer="date", of="person", variable="birth_date",
       forms=("{when} {was} {x} born", "when {was} {x}'s birthday", "how old is {x}")),
    _r("date of death", "date of death|death date|year of death", ask="When did {x} die?", find="{x} died",
       answer="date", of="person", variable="death_date", forms=("{when} {did} {x} (?:die|pass away)",
       "when (?:is|was) {x}'s death")),
    _r("place of birth", "place of birth|birthplace|birth place|city of birth|birth city|hometown|home town",
       ask="Where was {x} born?", find="{x} born in", answer="place", of="person", variable="birthplace",
       forms=("{where} {was} {x} born(?: in| at)?",)),
    _r("place of death", "place of death|deathplace|death place|city of death", ask="Where did {x} die?",
       find="{x} died in", answer="place", of="person", variable="death_place",
       forms=("{where} {did} {x} (?:die|pass away)(?: in| at)?",)),
    _r("place of burial", "place of burial|burial place|resting place|final resting place|place of interment|grave",
       ask="Where is {x} buried?", find="{x} buried cemetery", answer="place", of="person", variable="burial_place",
       forms=("{where} {was} {x} (?:buried|interred|laid to rest)(?: in| at)?",)),
    _r("cause of death", "cause of death|manner of death|reason of death|reason for the death",
       ask="What was the cause of death of {x}?", find="{x} died of cause of death", answer="thing", of="person",
       forms=("(?:why|how) did {x} die", "what did {x} die (?:of|from)", "what killed {x}")),
    _r("country of citizenship",
       "nationality|country of citizenship|citizenship|home country|home nation|homeland|native country|birth country",
       ask="What is the nationality of {x}?", find="{x} nationality", answer="country", of="person",
       variable="nationality", forms=("(?:what|which) nationality (?:is|was|does|did) {x}(?: have)?",
       "(?:what|which|(?:from )?(?:what|which)) country {was} {x} (?:from|a citizen of)",
       "(?:what|which) country {x} (?:is|was|comes|came) from",
       "(?:what|which) country {did} {x} (?:come|originate|hail) from", "from (?:what|which) country {was} {x}",
        "where {was} {x} from",
       "of (?:what|which) country {was} {x} a citizen")),
    _r("educated at", "alma mater|university|college|school|place of education", ask="Where was {x} educated?",
       find="{x} educated university graduated studied", answer="organisation", of="person", variable="university",
       forms=("where {did} {x} (?:study|graduate|go to school|go to college|receive education)(?: from| at)?",
       "(?:what|which|from which|at which) (?:university|college|school) {did} {x} (?:attend|study at|graduate"
       " from|go to|study|graduate)",
       "where (?:was|is) {x} educated(?: at)?")),
    _r("employer", "employer|workplace|place of employment|place of work", ask="Where did {x} work?",
       find="{x} worked at employer professor", answer="organisation", of="person",
       forms=("where {did} {x} work(?: at| for)?", "(?:who|which company) {did} {x} work for")),
    _r("occupation", "occupation|profession|job", ask="What is the occupation of {x}?", find="{x} was a occupation",
       answer="thing", of="person", forms=("what {did} {x} do for a living",
       "what (?:occupation|profession) {did} {x} have")),
    _r("award received", "award|awards|prize|medal|honour|honor", ask="What award did {x} receive?",
       find="{x} award won received", answer="thing", variable="award",
       forms=("(?:what|which) (?:award|prize|medal|honou?r)s? {x} (?:received|got|won|earned)",
       "(?:what|which) (?:award|prize|medal|honou?r)s? {did} {x} (?:receive|get|win|earn)",
       "what is the (?:award|prize) that {x} (?:received|got|won|earned)")),
    _r("doctoral advisor", "doctoral advisor|doctoral adviser|doctoral supervisor|thesis advisor|phd advisor",
       verbs="supervised|advised", ask="Who was the doctoral advisor of {x}?",
       find="{x} doctoral advisor supervised doctorate under", of="person"),
    _r("doctoral student", "doctoral student|doctoral students", ask="Who was a doctoral student of {x}?",
       find="{x} doctoral students", of="person"),
    _r("student of", "teacher|mentor|tutor", verbs="taught|mentored", ask="Who taught {x}?",
       find="{x} student of studied under taught by", of="person", variable="teacher",
       forms=("who(?:m)? (?:was|is) {x} (?:a )?student of",)),
    _r("student", "student|pupil", ask="Who was a student of {x}?", find="{x} students", of="person"),
    _r("religion", "religion|faith|church", ask="What is the religion of {x}?", find="{x} religion", answer="thing"),
    _r("political party", "political party|party", ask="What political party is {x} a member of?",
       find="{x} political party member", answer="organisation", of="person", variable="party",
       forms=("(?:what|which) (?:political )?party (?:is|was|does|did) {x} (?:a member of|belong to|in)",)),
    _r("sports team", "team|sports team|club|football club", ask="What team does {x} play for?",
       find="{x} player team plays for", answer="organisation", of="person", variable="team",
       forms=("(?:what|which) (?:team|club) {did} {x} play for",)),
    _r("instrument", "instrument", ask="What instrument does {x} play?", find="{x} instrument plays", answer="thing",
       of="person", forms=("(?:what|which) instrument {did} {x} play",)),
    _r("sport", "sport", ask="What sport does {x} play?", find="{x} sport player", answer="thing",
       forms=("(?:what|which) sport {did} {x} (?:play|compete in)",)),
    _r("position held", "position|office", ask="What position did {x} hold?", find="{x} position held office",
       answer="thing"),
    _r("native language", "native language|mother tongue", ask="What is the native language of {x}?",
       find="{x} native language", answer="thing"),
    _r("period active", "active period", ask="During which years was {x} active?", find="{x} active years career",
       answer="date", variable="period"),
)
_WORKS = (
    _r("publication date", "publication date|release date|date of publication|date of release|release year|premiere",
       ask="When was {x} released?", find="{x} released", answer="date", of="work", variable="release_date",
       forms=("{when} {was} {x} (?:first )?(?:released|published|issued|aired|premiered)",
       "{when} {did} {x} (?:come out|premiere|air|debut|open)")),
    _r("country of origin", "country of origin", ask="What is the country of origin of {x}?",
       find="{x} country of origin", answer="country", of="work", variable="country",
       forms=("(?:what|which) country (?:produced|made|released) {x}",
       "(?:what|which) country (?:was|is) {x} (?:made|produced) in")),
    _r("publisher", "publisher|publishing company", verbs="published", ask="Who published {x}?",
       find="{x} published by publisher", answer="organisation", of="work"),
    _r("record label", "record label|label", ask="What record label released {x}?", find="{x} record label",
       answer="organisation", variable="label",
       forms=("(?:what|which) (?:record )?label (?:released|is|was) {x}(?: (?:signed to|on|released by|released"
              " on))?",)),
    _r("production company", "production company|studio", ask="What company produced {x}?",
       find="{x} production company produced by", answer="organisation", of="work", variable="company"),
    _r("distributor", "distributor", verbs="distributed", ask="Who distributed {x}?", find="{x} distributed by",
       answer="organisation", of="work"),
    _r("genre", "genre", ask="What genre is {x}?", find="{x} genre", answer="thing",
       forms=("(?:what|which) genre (?:is|was|are|does) {x}(?: belong to)?",
       "what (?:type|kind) of (?:film|music|book) is {x}")),
    _r("language of work", "original language|language", ask="What is the language of {x}?", find="{x} language",
       answer="thing", variable="language"),
    _r("cast member", "cast member|star|stars|lead actor|cast", verbs="starred in", ask="Who starred in {x}?",
       find="{x} starring cast", of="work", variable="actor"),
    _r("based on", "source material", ask="What is {x} based on?", find="{x} based on", answer="work", of="work"),
)
_ORGANISATIONS = (
    _r("founded by", "founder|co-founder|founders", verbs="founded|established|started", ask="Who founded {x}?",
       find="{x} founded by founder", variable="founder"),
    _r("inception", "founding date|foundation date|inception|date of foundation|founding year|date of establishment",
       ask="When was {x} founded?", find="{x} founded established", answer="date", variable="founding_date",
       forms=("{when} {was} {x} (?:first )?(?:founded|established|formed|created|incorporated|built|started"
              "|launched|opened)",
       "{when} {did} {x} (?:form|start|begin|open)")),
    _r("headquarters location", "headquarters|headquarters location|head office",
       ask="Where is the headquarters of {x}?", find="{x} headquartered based in", answer="place",
       variable="headquarters", forms=("{where} {was} {x} (?:headquartered|based)(?: in)?",
       "{where} {was} the headquarters of {x}(?: located)?")),
    _r("chief executive officer", "ceo|chief executive officer|chief executive", ask="Who is the CEO of {x}?",
       find="{x} chief executive officer CEO", variable="ceo"),
    _r("lead singer", "lead singer|lead vocalist|frontman|frontwoman", ask="Who is the lead singer of {x}?",
       find="{x} band lead singer vocalist", variable="singer"),
    _r("head coach", "head coach|coach|manager", ask="Who is the head coach of {x}?", find="{x} head coach manager",
       variable="coach"),
    _r("chairperson", "chairman|chairperson|chair", ask="Who is the chairman of {x}?", find="{x} chairman"),
    _r("president", "president", ask="Who is the president of {x}?", find="{x} president"),
    _r("owned by", "owner", verbs="owned", ask="Who is the owner of {x}?", find="{x} owned by owner",
       answer="organisation", variable="owner"),
    _r("parent organization", "parent company|parent organization|parent organisation",
       ask="What is the parent company of {x}?", find="{x} parent company subsidiary of", answer="organisation",
       variable="parent_company"),
    _r("manufacturer", "manufacturer|maker", verbs="manufactured", ask="Who is the manufacturer of {x}?",
       find="{x} manufactured by", answer="organisation"),
    _r("member of", "band|former band|music group", ask="Which band is {x} a member of?", find="{x} band member",
       answer="organisation", of="person", variable="band"),
    _r("subsidiary", "subsidiary", ask="What is the subsidiary of {x}?", find="{x} subsidiary owns",
       answer="organisation"),
    _r("broadcaster", "original network|network|broadcaster|television network", ask="Which network aired {x}?",
       find="{x} network aired on broadcast", answer="organisation", variable="network"),
    _r("namesake", "namesake", ask="What is {x} named after?", find="{x} named after", answer="thing",
       forms=("(?:who|what) (?:is|was) {x} named (?:after|for)",)),
)
_PLACES = (
    _r("mouth of the watercourse", "mouth", ask="Where is the mouth of {x}?", find="{x} river flows into mouth",
       answer="place", variable="mouth"),
    _r("capital", "capital|capital city", ask="What is the capital of {x}?", find="{x} capital city", answer="place",
       of="place"),
    _r("population", "population", ask="What is the population of {x}?", find="{x} population", answer="number",
       of="place"),
    _r("area", "area|surface area", ask="What is the area of {x}?", find="{x} area square", answer="number",
       of="place"),
    _r("currency", "currency|official currency", ask="What is the currency of {x}?", find="{x} currency",
       answer="thing", of="place"),
    _r("official language", "official language", ask="What is the official language of {x}?",
       find="{x} official language", answer="thing", of="place", variable="language"),
    _r("country", "country|nation", ask="What country is {x} in?", find="{x} country", answer="country",
       forms=("(?:in )?(?:what|which) country {was} {x}(?: located| situated| found)?(?: in)?",
       "(?:what|which) country {did} {x} belong to")),
    _r("location", "location|site|scene|venue", ask="Where is {x} located?", find="{x} located in", answer="place",
       forms=("{where} {was} {x} (?:located|situated|found)(?: in| at)?",)),
    _r("state", "", ask="In which state is {x} located?", find="{x} located in state", answer="place",
       forms=("(?:in )?(?:what|which) state (?:is|was) {x}(?: located| situated| found)?(?: in)?",)),
    _r("county", "county", ask="In which county is {x} located?", find="{x} located in county", answer="place",
       forms=("(?:in )?(?:what|which) county (?:is|was) {x}(?: located| situated| found)?(?: in)?",)),
    _r("continent", "continent", ask="On which continent is {x}?", find="{x} continent", answer="place"),
    _r("length", "length", ask="How long is {x}?", find="{x} length km miles long", answer="number",
       forms=("how long is {x}",)),
    _r("height", "height|elevation", ask="How high is {x}?", find="{x} height metres tall elevation",
       answer="number", forms=("how (?:high|tall) is {x}",)),
    _r("head of state", "head of state|king|queen|monarch|emperor", ask="Who is the head of state of {x}?",
       find="{x} head of state", of="place"),
    _r("head of government", "head of government|prime minister|mayor|governor",
       ask="Who is the head of government of {x}?", find="{x} head of government prime minister mayor", of="place"),
)
# fmt: on
# Who does something: the noun is a relation of its own.
_ROLE_NOUNS = (
    "winner|recipient|receiver|champion|captain|leader|ruler|commander|conqueror|narrator|hero|heroine|villain"
    "|protagonist|main character|title character|drummer|bassist|guitarist|lead guitarist|keyboardist"
    "|founding member|chancellor|dean|bishop|archbishop|builder|heir|successor|predecessor|translator|illustrator"
    "|choreographer|sponsor|killer|assassin"
)
_ROLES = tuple(
    _r(role, role, ask=f"Who is the {role} of {{x}}?", find=f"{{x}} {role}") for role in _ROLE_NOUNS.split("|")
)
# One thing of another, asked for by its noun.
_THINGS: dict[AnswerType, str] = {
    "place": "highest point|lowest point|county seat|mountain range|residence|neighborhood|neighbourhood|sister city"
    "|twin city|twin town|largest city|stadium|home stadium|home ground|home venue|home arena|constituency",
    "organisation": "military branch|high school|dynasty|ethnic group"
    "|governing body|legislative body|central bank|religious order|noble house|royal house",
    "person": "patron saint|murderer|girlfriend|boyfriend|ancestor|boss|victim",
    "work": "sequel|prequel|anthem|national anthem",
    "thing": "constellation|genus|language family|writing system|ethnicity|military rank"
    "|architectural style|alphabet|industry|political ideology|voice type|denomination|species",
}
_OWNED = tuple(
    _r(noun, noun, ask=f"What is the {noun} of {{x}}?", find=f"{{x}} {noun}", answer=answer)
    for answer, nouns in _THINGS.items()
    for noun in nouns.split("|")
)

RELATIONS: tuple[Relation, ...] = (*_MAKERS, *_KIN, *_LIFE, *_WORKS, *_ORGANISATIONS, *_PLACES, *_ROLES, *_OWNED)
BY_NAME: dict[str, Relation] = {relation.name: relation for relation in RELATIONS}
BY_NOUN: dict[str, Relation] = {noun: relation for relation in reversed(RELATIONS) for noun in relation.nouns}

# Relations made of others, nearest first; further readings follow, for a second try.
COMPOSED: dict[str, tuple[tuple[str, ...], ...]] = {
    "paternal grandfather": (("father", "father"),),
    "paternal grandmother": (("father", "mother"),),
    "maternal grandfather": (("mother", "father"),),
    "maternal grandmother": (("mother", "mother"),),
    "grandfather": (("father", "father"), ("mother", "father")),
    "grandmother": (("father", "mother"), ("mother", "mother")),
    "great-grandfather": (("father", "father", "father"),),
    "great-grandmother": (("father", "father", "mother"),),
    "father-in-law": (("spouse", "father"),),
    "mother-in-law": (("spouse", "mother"),),
    "brother-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "sister-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "sibling-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "son-in-law": (("child", "spouse"),),
    "daughter-in-law": (("child", "spouse"),),
    "child-in-law": (("child", "spouse"),),
    "co-husband": (("spouse", "spouse"),),
    "co-wife": (("spouse", "spouse"),),
    "stepfather": (("mother", "spouse"),),
    "stepmother": (("father", "spouse"),),
    "stepchild": (("spouse", "child"),),
    "stepson": (("spouse", "child"),),
    "stepdaughter": (("spouse", "child"),),
    "uncle": (("father", "sibling"), ("mother", "sibling")),
    "aunt": (("mother", "sibling"), ("father", "sibling")),
    "paternal uncle": (("father", "sibling"),),
    "paternal aunt": (("father", "sibling"),),
    "maternal uncle": (("mother", "sibling"),),
    "maternal aunt": (("mother", "sibling"),),
    "grandson": (("child", "child"),),
    "granddaughter": (("child", "child"),),
    "grandchild": (("child", "child"),),
    "nephew": (("sibling", "child"),),
    "niece": (("sibling", "child"),),
    "cousin": (("father", "sibling", "child"), ("mother", "sibling", "child")),
}
