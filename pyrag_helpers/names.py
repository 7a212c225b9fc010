"""Names of people, places and countries in texts, and lists of names: comparisons and common items."""

from __future__ import annotations

import re
import unicodedata

from pyrag_helpers.known import require_known

_COUNTRIES: dict[str, str] = {}
for _line in (
    """
united states: us usa america american americans united_states_of_america u_s u_s_a
united kingdom: uk britain great_britain british briton u_k english scottish welsh northern_irish
germany: german west_germany east_germany west_german east_german federal_republic_of_germany nazi_germany
france: french kingdom_of_france|italy: italian kingdom_of_italy|spain: spanish|portugal: portuguese
netherlands: dutch holland kingdom_of_the_netherlands|belgium: belgian|luxembourg: luxembourgish
ireland: irish republic_of_ireland|austria: austrian|switzerland: swiss|denmark: danish kingdom_of_denmark
sweden: swedish|norway: norwegian|finland: finnish|iceland: icelandic|poland: polish|hungary: hungarian
czech republic: czech czechia|slovakia: slovak slovakian|czechoslovakia: czechoslovak czechoslovakian
romania: romanian|bulgaria: bulgarian|greece: greek|turkey: turkish|albania: albanian|serbia: serbian
croatia: croatian|slovenia: slovenian slovene|bosnia and herzegovina: bosnian bosnia|montenegro: montenegrin
yugoslavia: yugoslav yugoslavian|north macedonia: macedonian macedonia|kosovo: kosovan|ukraine: ukrainian
belarus: belarusian|moldova: moldovan|russia: russian russian_federation russian_empire
soviet union: soviet ussr u_s_s_r|lithuania: lithuanian|latvia: latvian|estonia: estonian|georgia: georgian
armenia: armenian|azerbaijan: azerbaijani|kazakhstan: kazakh kazakhstani|uzbekistan: uzbek
china: chinese people_s_republic_of_china prc|taiwan: taiwanese republic_of_china|hong kong: hongkonger
japan: japanese empire_of_japan|south korea: south_korean korean republic_of_korea korea|north korea: north_korean
mongolia: mongolian|vietnam: vietnamese|thailand: thai|malaysia: malaysian|singapore: singaporean
indonesia: indonesian|philippines: filipino philippine filipina|cambodia: cambodian|myanmar: burmese burma
india: indian british_india|pakistan: pakistani|bangladesh: bangladeshi|sri lanka: sri_lankan|nepal: nepali nepalese
afghanistan: afghan|iran: iranian persian persia|iraq: iraqi|israel: israeli|lebanon: lebanese|syria: syrian
jordan: jordanian|saudi arabia: saudi saudi_arabian|egypt: egyptian|morocco: moroccan|algeria: algerian
tunisia: tunisian|libya: libyan|sudan: sudanese|ethiopia: ethiopian|kenya: kenyan|tanzania: tanzanian
uganda: ugandan|nigeria: nigerian|ghana: ghanaian|senegal: senegalese|cameroon: cameroonian|angola: angolan
south africa: south_african|zimbabwe: zimbabwean|zambia: zambian|somalia: somali|canada: canadian|mexico: mexican
cuba: cuban|jamaica: jamaican|haiti: haitian|dominican republic: dominican|puerto rico: puerto_rican
brazil: brazilian|argentina: argentine argentinian|chile: chilean|peru: peruvian|colombia: colombian
venezuela: venezuelan|ecuador: ecuadorian|bolivia: bolivian|uruguay: uruguayan|paraguay: paraguayan
costa rica: costa_rican|panama: panamanian|guatemala: guatemalan|cape verde: cape_verdean|cyprus: cypriot
malta: maltese|monaco: monegasque|australia: australian|new zealand: new_zealander|fiji: fijian
trinidad and tobago: trinidadian
""".strip()
    .replace("|", "\n")
    .splitlines()
):
    _name, _, _forms = _line.partition(": ")
    _COUNTRIES |= {form.replace("_", " "): _name for form in (_name, *_forms.split())}
_MAX_COUNTRY = max(len(name.split()) for name in _COUNTRIES)
_NATIONS = {"england", "scotland", "wales", "northern ireland"}
_ARTICLES = {"the", "a", "an"}
_DISTINGUISHING = re.compile(  # words that turn a name into another name: South Sudan, Henry IV
    r"new|(?:north|south|east|west)(?:ern)?|central|lower|upper|papua|jr|sr|junior|senior|equatorial|little|great(?:er)?"
    r"|[ivx]+|\d+(?:st|nd|rd|th)?"
)


_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "å": "aa", "ø": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Å": "Aa", "Ø": "Oe", "Ü": "Ue"}
)
_WORD = re.compile(r"\w+(?:\+\+|[+#♯](?!\w))?")  # C++, C#, Disney+
_LEADING_ARTICLE = re.compile(r"\A\s*(?:the|an?)\s+(?=\S)")
_MINUS = re.compile(r"\b(\w{1,2})[-−](?=[\s,;)]|$)")  # the blood group A-
_FIRST = {"st": "saint", "ste": "sainte", "mt": "mount", "mts": "mounts", "ft": "fort"}
_FIRST_WITH_POINT = {
    "dr": "doctor", "prof": "professor", "gen": "general", "col": "colonel", "capt": "captain", "lt": "lieutenant",
    "sgt": "sergeant", "gov": "governor", "sen": "senator", "rev": "reverend", "pres": "president",
    "univ": "university",
    "inst": "institute", "natl": "national", "intl": "international",
}  # fmt: skip
_LAST = {"st": "street", "ave": "avenue", "rd": "road", "blvd": "boulevard", "sq": "square", "ln": "lane"}
_LAST_WITH_POINT = {
    "co": "company", "corp": "corporation", "ltd": "limited", "inc": "incorporated", "bros": "brothers",
    "univ": "university",
    "inst": "institute", "dept": "department", "assoc": "association", "mtn": "mountain", "mtns": "mountains",
    "isl": "island",
}  # fmt: skip
_ABBREVIATED = (
    (re.compile(rf"(?<![\w\d])(?<!\d )({'|'.join(_FIRST)})\b\.?(?=\s*[^\W\d_])"), _FIRST),
    (re.compile(rf"\b({'|'.join(_FIRST_WITH_POINT)})\.(?=\s*\w)"), _FIRST_WITH_POINT),
    (re.compile(rf"(?<=\w )({'|'.join(_LAST)})\b\.?(?=\s*(?:,|$))"), _LAST),
    (re.compile(rf"(?<=\w )({'|'.join(_LAST_WITH_POINT)})\.(?!\w)"), _LAST_WITH_POINT),
)


def _written_out(plain: str) -> str:
    """Return a text in lower case with abbreviations in names expanded: St. Moritz, Mt. Harrow, Main St."""
    for pattern, words in _ABBREVIATED:
        plain = pattern.sub(lambda match, words=words: f"{words[match[1]]} ", plain)  # type: ignore[misc]
    return _MINUS.sub(r"\1_minus", plain)


def _tokens(text: str) -> list[str]:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    plain = _written_out(_LEADING_ARTICLE.sub("", plain)).translate(
        {ord("ł"): "l", ord("ø"): "o", ord("đ"): "d", ord("ı"): "i", ord("&"): " and "}
    )
    words = _WORD.findall(re.sub(r"\([^)]*\)", " ", plain)) or _WORD.findall(plain)
    return [word for word in words if word not in _ARTICLES] or words


def countries(text: str) -> set[str]:
    """Return the countries in a text, named by noun or adjective, each under one name; empty if none is known."""
    words, matches, at = _tokens(text), set(), 0
    while at < len(words):
        for size in range(min(_MAX_COUNTRY, len(words) - at), 0, -1):
            name = _COUNTRIES.get(" ".join(words[at : at + size]))
            if name or " ".join(words[at : at + size]) in _NATIONS:
                matches.add(name or " ".join(words[at : at + size]))
                at += size - 1
                break
        at += 1
    return matches


def same_entity(a: str, b: str) -> bool:
    """Return True if two texts name the same thing, judging by spelling.

    Case, accents, articles, punctuation and remarks in brackets are ignored; "Mueller" is "Müller". "U.S.", "American"
    and "United States" are the same country. Part of a name ("Elvis") or of a place ("Paris" in "Paris, France")
    suffices. Texts with several countries match if they share one. An empty text matches nothing.

    Args:
        a: First name, or an answer that contains a name.
        b: Second name, or an answer that contains a name.
    """
    return same_name(require_known(a), require_known(b))


def same_name(a: str, b: str) -> bool:
    """Return True if two texts match as in `same_entity`, even if one of them is an unknown answer.

    Args:
        a: First name.
        b: Second name.
    """
    if not (a.strip() and b.strip()):
        return False
    spellings = [(a, b), (_transcribed(a), b), (a, _transcribed(b))]
    return any(_matches(first, second) for first, second in dict.fromkeys(spellings))


def _transcribed(text: str) -> str:
    return unicodedata.normalize("NFC", text).translate(_UMLAUTS)


def _matches(a: str, b: str) -> bool:
    words_a, words_b = _tokens(a), _tokens(b)
    if not words_a or not words_b:
        return a.strip() == b.strip()
    if words_a == words_b:
        return True
    if _only_countries(a) and _only_countries(b):
        return _share_country(countries(a), countries(b))
    parts_a, parts_b = _parts(a), _parts(b)
    if len(parts_a) > 1 or len(parts_b) > 1:
        return _same_place(parts_a, parts_b)
    return _part_of_name(words_a, words_b)


def _only_countries(text: str) -> bool:
    words = " ".join(_tokens(text))
    for form in sorted(_COUNTRIES, key=len, reverse=True) if countries(text) else ():
        words = re.sub(rf"\b{re.escape(form)}\b", " ", words)
    return bool(countries(text)) and set(words.split()) <= {
        "and",
        "born",
        "citizen",
        "nationality",
        "of",
        "then",
        *_NATIONS,
        "northern",
    }


def _share_country(a: set[str], b: set[str]) -> bool:
    british = {"united kingdom"}
    return bool(a & b) or (a == british and b <= _NATIONS) or (b == british and a <= _NATIONS)


def _parts(text: str) -> list[tuple[str, ...]]:
    parts = [tuple(_tokens(part)) for part in text.split(",")]
    return [(_COUNTRIES.get(" ".join(part), " ".join(part)),) for part in parts if part]


def _same_place(a: list[tuple[str, ...]], b: list[tuple[str, ...]]) -> bool:
    return set(a) <= set(b) or set(b) <= set(a)


def _part_of_name(a: list[str], b: list[str]) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    rest = [word for word in large if word not in small]
    if any(_DISTINGUISHING.fullmatch(word) for word in rest):
        return False
    remaining = iter(large)
    in_order = all(any(_same_word(word, other) for other in remaining) for word in small)
    return in_order and not any(len(words) == 1 and len(words[0]) == 1 for words in (a, b))  # a letter is not a name


def _same_word(a: str, b: str) -> bool:
    return a == b or (min(len(a), len(b)) == 1 and a[0] == b[0] and (a + b).isalnum())


def split_list(text: str) -> list[str]:
    """Return the items of "A, B and C", each once, in order."""
    items = re.split(r"\s*[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|&)\s+", str(text).strip())
    return list(dict.fromkeys(item for item in items if item))


def common(a: str, b: str) -> list[str]:
    """Return the items that two lists ("A, B and C") share, in the spelling and order of the first list; empty if none.

    Args:
        a: First list, as text.
        b: Second list, as text.
    """
    others = split_list(require_known(b))
    return [item for item in split_list(require_known(a)) if any(same_name(item, other) for other in others)]
