"""Detector for texts that mean "there is no answer", for answers, judgements and the values of programs.

The whole text must mean this, never a single word: "Unknown Pleasures" and "Not Available (band)" are answers. Words
are mapped to their roles (`unknown_words`), and a sentence is a refusal if the sequence of roles is one: sources do not
mention it, something is not stated, nobody knows. Later sentences may explain the refusal, but must not give an answer.
Texts are cut to `MAX_CHARS` characters, which bounds the time.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from pyrag_helpers.unknown_words import ENGLISH, FOREIGN, SENTINELS

MAX_CHARS = 1_200
_MAX_WORDS = 120  # words of a sentence that are examined

_SPLIT = re.compile(r"[.!?…]+(?=[\s\"'”’*_)\]]|\Z)|[;:()\[\]|\n（）【】—–]+|\s-+\s|/{2,}")
_CLAUSE = re.compile(r"[,，、]")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NOT_SO = re.compile(r",\s(?:and\s)?not\s(?=the|about|her|his|its|their|where|who|when|what|a\b)", re.IGNORECASE)
_EITHER = re.compile(r"(?<=[^\W\d_]{3})/(?=[^\W\d_]{3})")
_EDGES = " \t\r\n.!?…\"'`*_()[]{}<>:;,-–—“”‘’«»„#=|~$。！？，、「」『』【】"
_SHORT_FORMS = {
    "n't": ("n",), "'s": ("b",), "'m": ("b",), "'re": ("b",), "'ve": ("a",), "'ll": ("a",), "'d": ("a",),
}  # fmt: skip
_CAN_NOT = {
    "cannot": "an",
    "cant": "an",
    "dont": "dn",
    "doesnt": "an",
    "couldnt": "an",
    "won't": "an",
    "can't": "an",
    "ain't": "bn",
}
_IS = frozenset(("isn't", "aren't", "wasn't", "weren't"))
_PRONOUNS = frozenset(("it", "there", "that", "what", "here"))

_ADJ = "[DAGN]*"
_SOURCES = f"(?:{_ADJ}i?s(?:[GA]|[rR]{_ADJ}i?s)*)"
_IN_SOURCES = f"(?:A*[rRB]+{_ADJ}(?:R{_ADJ})?i?[sG].*)"
_END = f"(?:A*|{_IN_SOURCES}|A*[Rw].*|t[SvVq].*|[rD]*[DA]*A+)"
_ANY_OBJECT = "(?:|[DAGEsiqfwtRro].*)"
_NOT = "(?:b|[ad]b?)?A*n[bA]*"

_REFUSALS = (
    # The documents do not mention it; the passages only discuss X; they are about other things.
    f"(?:[xo][rR])?{_SOURCES}(?:[rR].{{1,6}}?)?A*"
    "(?:[ad]n|n|M|k|[Svabd]A*[zxo]|j|bA*[nuKlyj]|[bv][rR][DA]*T|[avbS][DA]*l|bA*y|[vS][^w]{0,6}?j).*",
    f"{_SOURCES}A*[Svab].*(?:c.{{0,4}}[nzox]|W[vSi]).*",
    f"{_ADJ}[iq](?:[rR].{{1,6}}?)?A*(?:[ad]n[vVSqb]|k).*|f[ad]n(?:S|v.*s).*",
    # Nothing in the documents says so; none of the passages; no document mentions it; no information was found.
    f"(?:f[bav]+)?[xo][rR]{_ADJ}i?s.*|o{_ADJ}s.*|o[rR].?S.*|(?:fb)?xA*(?:R.{{1,5}}?)?b?A*[pPGK]{_END}"
    f"|(?:fb)?xA*(?:R.{{1,4}}?)?{_IN_SOURCES}",
    "(?:f[bav]+A*|m?[adZvP]*|)(?:z|nA*D?e|A*l|nD)[DAGNPeT]*(?:[siq]{1,2}(?:|t[SvVqZb].*|[rRwGpPbadAfKuNvSV].*)|[Sv](?:|[rRw].*))",
    "(?:f[bav]+)?z.{1,6}?b?A*p.*|z.{1,6}?b?A*[PG]A*r.*s.*|z[OE]{1,4}G|z[DAN]*E.{0,4}?b?A*[pPG]|fbzOtA*[vSVZ].*",
    # Not mentioned; it is not stated in the documents; her birthplace is not given in the text.
    f"[DAf]*nA*[pPGuK]+{_END}|o[pGP]{_END}|ob[pG]{_END}|[DAfb]*MA*p{_END}",
    ".{1,25}?(?:b|[ad]b?)A*nb?A*p.*|.{1,25}?bA*Mb?A*p.*",
    f"{_ADJ}(?:[siqf]|f|D)(?:[Rt].{{1,5}}?)?{_NOT}[PG]+{_END}",
    f"[DAGE]*E(?:[rR].{{1,6}}?)?{_NOT}[pPG]+{_END}",
    f".{{1,25}}?(?:b|[ad]b?)A*nb?A*[PG]{_IN_SOURCES}",
    f"(?:.{{0,25}}?b)?A*nA*r{_ADJ}i?s.*",
    f"D.{{1,12}}?bA*nb?A*G+{_END}",
    # Unknown; the date remains unclear; missing from the documents.
    f"(?:[^U].{{0,25}}?b[DA]*|[DAE]*E|A*)u+(?:{_END}|t[DAm].*|U.*[nzxkl].*)",
    f"(?:.{{0,25}}?b)?A*K(?:{_IN_SOURCES}|{_ADJ}i.*)",
    f"{_ADJ}[siq]G*(?:R.{{1,6}}?)?G*b?A*(?:[lKu]|nA*e).*",
    # I do not know; I have no information; I could not find it.
    f"m(?:[ad]|b)?A*nA*[avVqeSZ].*|mPA*x.*|m?b?A*nA*P{_END}|mA*k.*|mb?A*u.*",
    # Cannot be determined; cannot find the answer; it is not possible to say; unable to determine X.
    f"anb[pP]{_END}|anA*V.*|anA*[vSZq]{_ANY_OBJECT}|dn(?:Z{_ANY_OBJECT})",
    f"(?:.{{0,12}}?b)?A*(?:y|n[hA]|na)tA*(?:V.*|[vSZqb]{_ANY_OBJECT})",
    # Not enough; lack of information; beyond the scope of the documents; more information is needed.
    "kR[DAGNe]*[siq](?:|[rRwtf].*|b?A*)|(?:.{0,12}?b)?BD*.*s.*|[DA]*ib?N.*",
    # The answer is not there.
    f"D?q(?:b|ab?)n(?:P|G){_END}",
)
_DENYING = frozenset("nMkzxojuKlyTWBN")  # every refusal has one of these
_INTRODUCED = re.compile(r"\A(?:mbHw?|f[bvS]w|H|c|A*w(?=[oi])|A*U(?=o|[DAGz]*[is])|f[bv](?=[DAG]*i?s))")
_TALK = re.compile("c?A*(?:[vSnzxjmoHkKM]|[DAG]*[si]|f[adAjvSn]|D?q?b?u|A*c?[DAG]*i).*|[^L]*[nzxo].*s.*")
_HEDGE = re.compile(
    "[HADGNEsirRmbqadvScwtfPpL]*|(?:r|R).{0,12}[si].{0,6}|m[advbpPA]*[DAGsiq]*|m.{0,4}|(?:[rR]D?|A*)H.*"
)

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CHINESE = re.compile(
    r".{0,20}(?:信息|資訊|资料|資料|证据|数据|上下文|依据|内容).{0,4}(?:不足|不够|有限|缺失|缺乏|不详).{0,20}"
    r"|.{0,60}?(?:没有|沒有|未(?!来|來|央|婚)|无法|無法|不能|并未|並未|难以|難以|不足以|缺乏|缺少|找不到|不包含|不含|无(?!间|極|锡|名)|不)"
    r".{0,12}?(?:提到|提及|提供|说明|說明|给出|給出|包含|记载|記載|涉及|信息|資訊|资料|資料|证据|答案|确定|確定|回答|判断|判斷|得知|推断|得出"
    r"|找到|知道|明确|明確|描述|指出|足够|足夠|依据|内容|记录|清楚|确认|知曉|知晓|获知|详细).{0,40}"
)
_JAPANESE = re.compile(
    r".{0,80}(?:不明|未詳|(?:わか|分か|記載|言及|情報|特定|判断|答え|回答|見つか|含まれ|述べられ|書かれ|示され|該当|確認|提供|説明"
    r"|決定|記述|触れ)"
    r".{0,12}(?:ません|ない|なし|せず|不足|不十分)).{0,12}"
)
_KOREAN = re.compile(
    r".{0,80}(?:알 수 없|모르|모릅니다|불명|미상"
    r"|(?:언급|명시|확인|분명|명확|정보|찾을|나와|답|제공|판단|포함|기재|결정|관련).{0,12}"
    r"(?:없|않|부족|못)).{0,20}"
)


def is_unknown(text: str) -> bool:
    """Return True if a text, read as an answer, is empty or means that there is no answer."""
    return _is_refusal(_cut(text.replace("’", "'").replace("ʼ", "'")))


@lru_cache(maxsize=1024)  # an answer is judged when it is parsed, and again wherever a program uses it
def _is_refusal(text: str) -> bool:
    text = _EITHER.sub("; ", _NOT_SO.sub(" but not ", text))
    plain = " ".join(text.casefold().split()).strip(_EDGES)
    if not plain or plain in SENTINELS:
        return True
    if _CJK.search(plain):
        return _asian(plain)
    sentences = [part for piece in _SPLIT.split(text) if (part := piece.strip(_EDGES))]
    return _says_unknown(sentences, "en") or any(
        _says_unknown(sentences, language) for language in _foreign_languages(plain)
    )


def _cut(text: str) -> str:
    """Return a text; if it is longer than `MAX_CHARS`, return its beginning up to the end of a sentence."""
    if len(text) <= MAX_CHARS:
        return text
    begun = text[:MAX_CHARS]
    return begun[: begun.rfind(". ") + 1] or begun


def _says_unknown(sentences: list[str], language: str) -> bool:
    """Return True if the first sentence after introductions is a refusal, and no later sentence gives an answer."""
    for number, sentence in enumerate(sentences):
        if _refuses(sentence, language):
            return all(_is_talk(later, language) for later in sentences[number + 1 :])
        codes = _codes(sentence, language)
        if number == 3 or not _HEDGE.fullmatch(codes) or _is_title(sentence):
            return False
    return False


def _refuses(sentence: str, language: str) -> bool:
    """Return True if a sentence means that something is not known, ignoring introductory clauses."""
    if sentence.casefold() in SENTINELS:
        return True
    clauses = _CLAUSE.split(sentence)
    for number in range(min(len(clauses), 4)):
        rest = ",".join(clauses[number:])
        codes = _INTRODUCED.sub("", _codes(rest, language), count=1)
        if _matches(codes, language) and not _is_title(rest, codes) and not _answers_after(codes):
            return True
        head = _codes(clauses[number], language)
        if _matches(head, language) and not _is_title(clauses[number], head):
            return all(_is_talk(later, language) for later in clauses[number + 1 :])
        if not _HEDGE.fullmatch(head):
            return False
    return False


def _answers_after(codes: str) -> bool:
    """Return True if "but" is followed by anything other than more about the sources."""
    place = codes.find("c", 1)
    return place > 0 and not _TALK.fullmatch(codes[place:])


def _is_talk(sentence: str, language: str) -> bool:
    if sentence.casefold() in SENTINELS or _refuses(sentence, language):
        return True
    codes = _codes(sentence, language)
    return len(codes) > 2 and _TALK.fullmatch(codes) is not None and not _is_title(sentence, codes)


def _is_title(sentence: str, codes: str = "O") -> bool:
    """Return True if the words are capitalised as in a title, and some of them do not belong to a refusal."""
    words = [word for word in _WORD.findall(sentence) if len(word) > 3]
    capital = len(words) >= 2 and all(word[0].isupper() for word in words) and not sentence.isupper()
    return capital and (bool(set("OE") & set(codes)) or ("w" in codes and not set("siq") & set(codes)))


def _matches(codes: str, language: str) -> bool:
    if not codes:
        return False
    if language == "en":
        return not _DENYING.isdisjoint(codes) and _refusal().fullmatch(codes) is not None
    return _matches_foreign(codes)


@cache
def _refusal() -> re.Pattern[str]:
    """Return all refusals as one pattern."""
    return re.compile("|".join(f"(?:{form})" for form in _REFUSALS))


def _matches_foreign(codes: str) -> bool:
    """Return True if words in a language with another word order are a refusal. `codes` holds each word's role."""
    parts = set(codes)
    denied = bool(parts & set("nzx"))
    if any(pattern.fullmatch(codes) for pattern in _foreign_patterns()):
        return True
    if parts & set("s") and denied and parts & set("pPGai"):
        return True
    if "V" in parts and denied and len(codes) <= 6 and parts <= set("nzVmfDAxa"):
        return True
    settled = "p" in parts and len(codes) <= 16
    return settled and ("y" in parts or (denied and "a" in parts))


@cache
def _foreign_patterns() -> tuple[re.Pattern[str], ...]:
    forms = (
        r"(?:.{1,12}b|O{1,3})?A*u(?:[rRG].*s.*)?",
        r"[DAbfanm]*n[DAbfn]*[pP]+b?",
        r"[fbavmDrsGAn]*(?:z|n[abDe]*|l)[DAGelR]*[iq].*",
        r"[DAG]*[iq](?:l|z|(?:n?b|bn|n)[DAn]*[PpG]).*",
    )
    return tuple(map(re.compile, forms))


def _foreign_languages(plain: str) -> list[str]:
    """Return the other languages in which a text has words that deny something."""
    words = set(_WORD.findall(plain))
    return [language for language in FOREIGN if not _markers(language).isdisjoint(words)]


@cache
def _markers(language: str) -> frozenset[str]:
    return frozenset(word for code in "nzxuyl" for word in FOREIGN[language].get(code, "").split())


@cache
def _classes(language: str) -> dict[str, str]:
    table = ENGLISH if language == "en" else FOREIGN[language]
    return {word: code for code, words in table.items() for word in words.split()}


@lru_cache(maxsize=256)
def _codes(sentence: str, language: str) -> str:
    """Return the roles of a sentence's words, as one letter each."""
    classes = _classes(language)
    words = _WORD.findall(sentence.casefold())[:_MAX_WORDS]
    if language != "en":
        return "".join(classes.get(part, "O") for word in words for part in re.split("['’]", word))
    return "".join(_code(word, classes) for word in words if word not in ("and", "or"))


def _code(word: str, classes: dict[str, str]) -> str:
    if word in _CAN_NOT:
        return _CAN_NOT[word]
    if word in classes:
        return classes[word]
    if word.isdigit():
        return "A" if len(word) < 3 else "O"
    stem, mark, form = word.partition("'")
    if not mark:
        return "O"
    if form == "t" and stem.endswith("n"):
        return ("b" if word in _IS else "d" if stem == "don" else "a") + "n"
    if form == "s" and stem not in _PRONOUNS:
        return classes.get(stem, "O")
    return classes.get(stem, "O") + "".join(_SHORT_FORMS.get(mark + form, ()))


def _asian(plain: str) -> bool:
    """Return True if a text in Chinese, Japanese or Korean refuses.

    These languages lack the spaces or the words that the grammar for other languages relies on.
    """
    text = re.sub(r"\s+", " ", plain)[:160]
    if any(form in text for form in ("但", "不过", "しかし", "하지만")) and len(text) > 40:
        return False
    parts = [part for piece in re.split(r"[。！？!?]", text) if (part := piece.strip(_EDGES))]
    kinds = (_CHINESE, _JAPANESE, _KOREAN)
    return bool(parts) and all(part in SENTINELS or any(kind.fullmatch(part) for kind in kinds) for part in parts)
