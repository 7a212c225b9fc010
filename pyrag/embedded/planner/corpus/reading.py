"""Reading of a question over all documents: which documents it selects, and what it does with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from pyrag.agents.corpus.overview import CorpusOverview
from pyrag.embedded.lexicon.verbs import participle_of
from pyrag.embedded.plain_question import plain_question
from pyrag.embedded.planner.corpus.conditions import conditions_of
from pyrag.embedded.planner.corpus.fields import left_out, with_field
from pyrag.embedded.planner.corpus.meaning import Conditions, CorpusQuestion, SelectedDocuments, Use
from pyrag.embedded.planner.corpus.times import event_field
from pyrag.embedded.planner.corpus.vocabulary import Vocabulary, is_plural, is_time, noun_phrases, plain_words
from pyrag.embedded.words import singular
from pyrag.retrieval.filters.tree import Filter, all_of, any_of

_MAX_CHARACTERS = 500
_WHOLE = r"(?:index|corpus|collection|knowledge base|database|library|folder|archive)"
_DOCUMENTS = r"(?:documents?|docs?|files?|records?|entries)"
_PLAIN_COUNT = re.compile(
    rf"(?:how many|(?:what is|what's) the (?:total )?number of|count)(?: of)?(?: all)?(?: the)? {_DOCUMENTS}"
    rf"(?: (?:are|do you have|do we have|does the {_WHOLE} (?:have|hold|contain)|can you (?:see|search|read)))?"
    rf"(?: (?:there|available|indexed))?(?: (?:are )?(?:in|of|within) (?:the|this|my|your|our) {_WHOLE}| altogether"
    r"| in total| overall)*\W*",
    re.IGNORECASE,
)
_ALL = r"(?:all (?:of )?|every |each (?:of )?|any of )?(?:the |our |my |these |those )?"
_EACH_OF = r"(?:all (?:of )?|every |each (?:of )?)(?:the |our |these |those )?"
_EXIST = re.compile(
    rf"\s*\b(?:are there|do (?:we|you) have|exist|there are|are (?:there )?(?:in|of) (?:the|this|our) {_WHOLE}"
    rf"|in (?:the|this|our) {_WHOLE}|altogether|in total|overall)\b",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"\b(?:folder|directory) (?!that|which|with)[\w-]+$", re.IGNORECASE)
_HIGHEST = (
    r"most recent|most expensive|highest|largest|greatest|biggest|maximum|maximal|most|longest|latest|newest|last|top"
)
_LOWEST = r"lowest|smallest|least|minimum|minimal|fewest|shortest|earliest|oldest|first|cheapest"
_NAMED = r"(?P<name>(?:number of )?.+?)"
_LIMIT = rf"(?:(?P<most>{_HIGHEST})|(?P<least>{_LOWEST}))"
_WH = r"(?:what|who|whom|when|where|which|how|why|by whom|in which|on which|is|are|was|were|does|do|did|has|have)\b"
_TIMES = re.compile(r"\b(?:date|day|deadline|expiry|year)\b", re.IGNORECASE)
_NUMBERS = re.compile(
    r"\b(?:amount|number|cap|fee|price|cost|value|sum|total|rate|percentage|length|size|budget|salary|rent|penalty"
    r"|limit|duration|age|count|score|weight|revenue|turnover|term|period)s?\b",
    re.IGNORECASE,
)


def asks_for_count(question: str) -> bool:
    """Return True if a question asks only for the number of documents, which no search can answer."""
    return _PLAIN_COUNT.fullmatch(plain_question(question)) is not None


@lru_cache(maxsize=4)  # an overview is large
def read_corpus_question(question: str, overview: CorpusOverview) -> CorpusQuestion | None:
    """Return the meaning of a question over all documents; None for other questions.

    Args:
        question: The user's question.
        overview: Overview of the documents.
    """
    text = plain_question(question).strip(" ?!.")
    if len(text) > _MAX_CHARACTERS or any(mark in text for mark in "{}\n"):
        return None
    if asks_for_count(question):
        return CorpusQuestion("count", SelectedDocuments())
    vocabulary = Vocabulary(overview)
    for pattern, make in _SHAPES:
        match = pattern.fullmatch(text)
        meaning = make(match, vocabulary) if match else None
        if meaning is not None:
            remarks = [meaning.note, *left_out(meaning, vocabulary)]
            return replace(meaning, note="; ".join(filter(None, remarks)))
    return None


def select(text: str, vocabulary: Vocabulary) -> SelectedDocuments | None:
    """Return the documents that words such as "active contracts from 2021" select; None if they cannot be read.

    Args:
        text: The noun with the words around it.
        vocabulary: Words of the metadata.
    """
    text = text if _FOLDER.search(text) else _EXIST.sub(" ", f" {text} ").strip()
    words = text.split()
    phrases = [(start, end, " ".join(words[start:end]).strip(",:;")) for start, end in noun_phrases(words)]
    phrases.sort(key=lambda phrase: not is_plural(phrase[2]))  # "active" in "active contracts" is not a kind
    for start, end, phrase in phrases:
        kind = vocabulary.kind(phrase)
        if kind is None:
            continue
        noun, where, word = kind
        while where is not None and (other := _also(words[end:], vocabulary)) is not None:
            where, end = any_of(where, other[0]), end + other[1]
        titled = (word,) if word else ()
        inner = vocabulary.within(where, titled)
        before = _modifiers(words[:start], inner)
        after = conditions_of(" ".join(words[end:]), noun, inner)
        if before is not None and after is not None:
            both = before + after
            named = tuple(dict.fromkeys((*titled, *both.words)))
            return SelectedDocuments(noun, all_of(where, *both.filters), named, both.tests, both.facts, base=where)
    return None


def selected(selection: SelectedDocuments, vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary of the documents that metadata and words select.

    Args:
        selection: The selected documents.
        vocabulary: Words of all documents.
    """
    return vocabulary.within(selection.where, selection.words)


_PLAIN_NAME = re.compile(r"^(?:number|amount|count) of (?:the )?", re.IGNORECASE)


def _also(words: list[str], vocabulary: Vocabulary) -> tuple[Filter, int] | None:
    """Return the filter for a second kind of documents after "and", and the number of words; None without one."""
    if len(words) < 2 or words[0].lower() not in ("and", "or"):
        return None
    for end in range(min(5, len(words)), 1, -1):
        kind = vocabulary.kind(" ".join(words[1:end]).strip(",:;"))
        if kind is not None and kind[1] is not None:
            return kind[1], end
    return None


def _modifiers(words: list[str], vocabulary: Vocabulary) -> Conditions | None:
    """Return the conditions in the words before a noun, such as "active" and "2021"; None if one is not a value."""
    conditions = Conditions()
    while words:
        for end in range(len(words), 0, -1):
            text = " ".join(words[:end]).strip(",")
            if end == 1 and plain_words(text) in _IDLE:
                break
            where = vocabulary.having(text) or (vocabulary.period(text, text) if re.fullmatch(r"\d{4}", text) else None)
            if where is not None:
                conditions += Conditions((where,))
                break
            if end == 1 and (word := vocabulary.folder_word(text)):
                conditions += Conditions(words=(word,))
                break
        else:
            return None
        words = words[end:]
    return conditions


_IDLE = frozenset(("the", "our", "all", "of", "these", "those", "my", "every", "each", "a", "an", "and", "different"))


_Make = Callable[[re.Match[str], Vocabulary], CorpusQuestion | None]


def _selecting(use: Use) -> _Make:
    """Return a reader of questions that count or list the documents that they select."""

    def read(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
        selection = select(match["rest"], vocabulary)
        return None if selection is None else CorpusQuestion(use, selection)

    return read


def _each(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
    selection = select(match["rest"], vocabulary)
    if selection is None:
        return None
    asked = re.sub(
        r"^(?:tell me |say |state |give (?:me )?|list |show (?:me )?|find )", "", match["asked"].strip(" ,:")
    )
    attribute = plain_words(_attribute_in(asked))
    if attribute in _TITLES:
        return CorpusQuestion("list", selection)
    fields = selected(selection, vocabulary).fields
    if (field := fields.get(attribute) or fields.get(singular(attribute))) is not None:
        return CorpusQuestion("each", selection, field=field.name)
    return CorpusQuestion("each", selection, _about_document(asked))


_TITLES = frozenset(("title", "titles", "name", "names", "list", "complete list", "full list", "overview"))


def _attribute_in(asked: str) -> str:
    """Return the attribute in "what is the penalty cap" or "the penalty cap"; else the text itself."""
    plain = re.sub(r"^(?:what|which|who) (?:is|are|was|were) ", "", asked, flags=re.IGNORECASE)
    return re.sub(r"^(?:the|its|their|a|an) ", "", plain, flags=re.IGNORECASE)


def _about_document(asked: str) -> str:
    """Return a question about one document: "its penalty cap" becomes "What is the penalty cap?"."""
    text = re.sub(r"\b(?:its|their)\b", "the", asked)
    text = re.sub(r"\b(?:them|they)$", "it", text)
    if not re.match(_WH, text, re.IGNORECASE):
        article = "" if re.match(r"(?:the|a|an)\b", text, re.IGNORECASE) else "the "
        text = f"what {'are' if is_plural(text) else 'is'} {article}{text}"
    return f"{text[:1].upper()}{text[1:]}?"


def _extreme(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
    groups = match.groupdict()
    selection = select(groups["rest"], vocabulary)
    if selection is None:
        return None
    lowest, name = bool(groups["least"]), (groups.get("name") or "").strip()
    use: Use = "extreme" if groups.get("value") is None else "extreme value"
    vocabulary = selected(selection, vocabulary)
    if not name:
        if not re.search(r"latest|newest|recent|last|oldest|earliest|first", match[0], re.IGNORECASE):
            return None
        times = [field for field in vocabulary.overview.fields if is_time(field)]
        time = vocabulary.fields.get("date") or vocabulary.fields.get("year") or next(iter(times), None)
        if time is not None:
            return with_field(CorpusQuestion(use, selection, is_lowest=lowest), time)
        return CorpusQuestion(use, selection, "What is the date?", returns="date", is_lowest=lowest)
    field = vocabulary.fields.get(plain_words(_PLAIN_NAME.sub("", name)))
    if field is not None:
        return with_field(CorpusQuestion(use, selection, is_lowest=lowest), field)
    is_length = re.search(r"longest|shortest", match["most"] or match["least"], re.IGNORECASE)
    returns = "date" if _TIMES.search(name) and not _NUMBERS.search(name) and not is_length else "number"
    return CorpusQuestion(use, selection, f"What is the {name}?", returns=returns, is_lowest=lowest)


def _done_first(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
    """Read "Which contract was signed first?"."""
    selection = select(match["rest"], vocabulary)
    if selection is None:
        return None
    name = event_field(match["verb"].lower(), selected(selection, vocabulary))
    if name:
        return CorpusQuestion("extreme", selection, field=name, is_lowest=bool(match["least"]))
    asked = f"When was it {match['verb']}?"
    return CorpusQuestion("extreme", selection, asked, returns="date", is_lowest=bool(match["least"]))


def _sum(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
    selection = select(match["rest"], vocabulary)
    if selection is None:
        return None
    use: Use = "average" if match["how"].lower() in ("average", "mean") else "total"
    field = selected(selection, vocabulary).fields.get(plain_words(_PLAIN_NAME.sub("", match["name"])))
    if field is not None:
        return with_field(CorpusQuestion(use, selection), field)
    return CorpusQuestion(use, selection, f"What is the {match['name']}?", returns="number")


def _named_by_did(match: re.Match[str], vocabulary: Vocabulary) -> CorpusQuestion | None:
    """Read "How many memos did Ada Lind write?" and "Which memos did Ada Lind write?"."""
    first, _, particle = match["verb"].lower().partition(" ")
    participle = "received" if first == "get" else f"{participle_of(first)} {particle}".strip()
    tail = f"{participle} by {match['who']} {match['more'] or ''}"
    selection = select(f"{match['rest']} {tail}", vocabulary)
    use: Use = "count" if match["how"].lower().startswith("how") else "list"
    return None if selection is None else CorpusQuestion(use, selection)


_SHAPES: tuple[tuple[re.Pattern[str], _Make], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make)
    for pattern, make in (
        (
            r"(?P<how>how many|which|what) (?P<rest>.+?) (?:did|does|do) (?P<who>.+?) "
            r"(?P<verb>write|sign|draft|approve|draw up|send|issue|prepare|receive|attend)(?P<more> .+)?",
            _named_by_did,
        ),
        (rf"how many {_ALL}(?:of )?(?P<rest>.+)", _selecting("count")),
        (rf"(?:what is |give me )?the (?:total |exact )?(?:number|count) of {_ALL}(?P<rest>.+)", _selecting("count")),
        (rf"count {_ALL}(?P<rest>.+)", _selecting("count")),
        (
            rf"what (?:is|was) the (?P<value>){_LIMIT} {_NAMED} (?:of|among|across|in|over) {_ALL}(?P<rest>.+)",
            _extreme,
        ),
        (
            rf"what (?:is|was) the (?P<how>total|sum|average|mean|combined)(?: of the)? {_NAMED}"
            rf" (?:of|among|across|in|over) {_ALL}(?P<rest>.+)",
            _sum,
        ),
        (rf"for {_ALL}(?P<rest>[^,:]+?)(?:[,:]\s*| (?={_WH}))(?P<asked>.+)", _each),
        (
            rf"(?P<asked>(?:what|who) (?:is|are|was|were) .+?) (?:of|in|for|from|by) {_EACH_OF}(?P<rest>.+)",
            _each,
        ),
        (
            r"(?:list|show|give|find|extract|collect|name|tell)(?: me)? (?P<asked>.+?) (?:of|in|for|from|by) "
            rf"{_EACH_OF}(?P<rest>.+)",
            _each,
        ),
        (
            r"(?P<asked>(?:who|when|where|how|what|which) .+? )(?:each|every)(?: of the)? (?P<rest>\S+)(?: \S+ed)?",
            _each,
        ),
        (
            rf"(?:which|what) (?:one )?(?:of )?{_ALL}(?P<rest>.+?) (?:has|have|had|with|sets?|states?|shows?) (?:the )?"
            rf"{_LIMIT}(?P<name> .+)",
            _extreme,
        ),
        (
            rf"(?:which|what) (?:one )?(?:of )?{_ALL}(?P<rest>.+?) (?:is|are|was|were) (?:the )?{_LIMIT}(?P<name>)",
            _extreme,
        ),
        (rf"(?:which|what) (?:is|was) (?:the |our ){_LIMIT}(?P<name>) (?P<rest>.+)", _extreme),
        (
            rf"(?:which|what) (?:one )?(?:of )?{_ALL}(?P<rest>.+?) (?:was|were) (?P<verb>\w+ed|written|sent)"
            r" (?:the )?(?:(?P<least>first|earliest)|last|latest|most recently)",
            _done_first,
        ),
        (
            rf"(?:list|name|show|give|find|enumerate|return|tell|get)(?: me)?(?: us)? {_ALL}(?P<rest>.+)",
            _selecting("list"),
        ),
        (rf"what are {_ALL}(?P<rest>.+)", _selecting("list")),
        (rf"(?:which|what) (?:of )?{_ALL}(?P<rest>.+)", _selecting("list")),
    )
)
