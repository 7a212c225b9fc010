"""Words as people have them: codes, numbers, camel case, invisible characters, glued words, and order."""

from __future__ import annotations

import re
from random import Random

import pytest

from pyrag.retrieval.bm25 import index_of
from pyrag.retrieval.words import forms
from pyrag.retrieval.words.forms import analysed, codes, folded, has_figure, plain
from pyrag.retrieval.words.spellings import JOINER, opaque_code, spellings
from pyrag.trace.model import Passage

SHA = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
JOINED = "a\u00adb"


def first(query: str, *texts: str, language: str = "english") -> str:
    """Return the text that is found first; ids and places favour the earlier ones."""
    found = index_of([Passage(f"{n}", "", text) for n, text in enumerate(texts)], language).search(query, 5)
    return found[0].text if found else ""


@pytest.mark.parametrize(
    ("query", "other", "right"),
    [
        ("Marlo 1.9.4", "Marlo 4.1.9 is out.", "Marlo 1.9.4 is out."),
        ("Marlo 1.9", "Marlo 9.1 is out.", "Marlo 1.9.4 is out."),
        ("Marlo 1.9", "Marlo 1.9.4 is out.", "Marlo 1.9 is out."),
        ("Bericht 03.11.2022", "Bericht vom 11.03.2022.", "Bericht vom 03.11.2022."),
        ("log of 2022-11-03", "The log of 2022-03-11.", "The log of 2022-11-03."),
        ("10.4.8.2", "The host 10.8.4.2 runs.", "The host 10.4.8.2 runs."),
        ("http://10.4.8.2:80/", "The host 10.8.4.2 runs.", "The host 10.4.8.2 runs."),
        ("harbour 555-12-77", "Harbour 555-77-12.", "Harbour 555-12-77."),
        ("ferry 08:21", "The ferry leaves at 21:08.", "The ferry leaves at 08:21."),
        ("section 4 paragraph 2", "See section 2, paragraph 4.", "See section 4, paragraph 2."),
        ("room 7 house 5", "House 7, room 5.", "House 5, room 7."),
        ("example.org", "The org and an example.", "Go to example.org now."),
        ('the sign "stone over water"', "The sign: water over stone.", "The sign: stone over water."),
        ("das Schild „Stein über Wasser“", "Das Schild: Wasser über Stein.", "Das Schild: Stein über Wasser."),
        ("the dog bites the man", "The man bites the dog.", "The dog bites the man."),
        ("Tool 3.12.0", "Tool v0.12.3 is out.", "Tool v3.12.0 is out."),
        ("Tool v3.12.0", "Tool 12.0.3 is out.", "Tool 3.12.0 is out."),
        ("KLM-4471", "The seal KLM is 4471 long.", "The seal KLM4471 fits."),
        ("1200 kg", "The tank is for kg of oil.", "The tank holds 1200kg of oil."),
        ("C++", "Written in C# by her.", "Written in C++ by her."),
        ("C#", "Written in C++ by her.", "Written in C# by her."),
    ],
)
def test_order_counts(query: str, other: str, right: str) -> None:
    assert first(query, other, right) == right


@pytest.mark.parametrize("one", ["14,500", "14.500", "14 500", "14'500", "14’500", "14\u202f500", "14500"])
@pytest.mark.parametrize("other", ["14,500", "14 500", "14\u00a0500", "14500"])
def test_thousands_separators_match_both_ways(one: str, other: str) -> None:
    text = f"The load is {other} kg."
    assert first(one, "The load is 145 kg.", text) == text
    assert " " in folded(one) or first(one, "The load is 500 of 14 kg.", text) == text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("1234567.89", "It costs 1,234,567.89 euros."),
        ("1.234.567,89", "It costs 1234567.89 euros."),
        ("1234567", "It costs 12,34,567 rupees."),
        ("getUserName", "Call get_user_name first."),
        ("get user name", "Call getUserName first."),
        ("user name", "Call getUserName first."),
        ("http server", "The HTTPServer waits."),
        ("HTTPServer", "The http server waits."),
        ("youtube", "A film on YouTube."),
        ("Waldarbeiterverband", "Der Wald\u00adarbeiter\u00adverband tagt."),
        ("Wald\u00adarbeiter\u00adverband", "Der Waldarbeiterverband tagt."),
        ("hydrodynamic", "It is hydro\u200bdynamic."),
        ("hydrodynamic", "It is hydro\u2060dynamic, \ufeffoften."),
        ("often", "It is hydro\u2060dynamic, \ufeffoften."),
        (SHA, f"The mark {SHA} is old."),
        (SHA.upper(), f"The mark {SHA} is old."),
        ("x" * 5000, f"Data {'x' * 5000} ends."),
        (f"https://a.example/f/{SHA}?v=2", f"Load https://a.example/f/{SHA}?v=2 now."),
        ("대구", "대구에는 섬유 박물관이 있다."),
        ("박물관", "대구에는 섬유 박물관이 있다."),
        ("물", "물은 차다."),
        ("대구에서", "대구의 시장."),
        ("מגדל", "המגדל בעכו נבנה."),
        ("עכו", "המגדל בעכו נבנה."),
        ("והמגדל", "מגדל ישן."),
        ("متحف", "المتحف في طنجة مغلق."),
        ("متحف", "ذهبت للمتحف امس."),
        ("بالمتحف", "متحف في طنجة."),
        ("احمد", "أحمد في البيت."),
        ("کتاب", "کتاب\u200cها اینجاست."),
        ("کتابها", "کتاب\u200cها اینجاست."),
        ("東京の首都", "東京は日本の首都だ。"),
        ("KLM4471", "The seal KLM-4471 fits."),
        ("KLM 4471", "The seal KLM4471 fits."),
        ("9783161484100", "ISBN 978-3-16-148410-0 is lent."),
        ("978-3-16-148410-0", "ISBN 9783161484100 is lent."),
        ("3f2504e04f8911d39a0c0305e82c3301", "Id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 here."),
        ("DE89370400440532013000", "Pay DE89 3704 0044 0532 0130 00 today."),
        ("DE89 3704 0044 0532 0130 00", "Pay DE89370400440532013000 today."),
        ("22334455", "Call +47 22 33 44 55 today."),
        ("1200kg", "The tank holds 1200 kg."),
        ("1000000", "LIMIT = 1_000_000"),
        ("utf8 decoder", "class Utf8Decoder reads."),
        ("email", "Send an e-mail today."),
        ("e-mail", "Send an email today."),
        ("wifi", "The Wi-Fi is off."),
        ("USA", "The U.S.A. won."),
        ("U.S.A.", "The USA won."),
        ("obrien", "O’Brien has a boat."),
        ("lighthouse", "The light-\nhouse burns."),
        ("Mueller", "Frau Müller backt."),
        ("Müller", "Frau Mueller backt."),
        ("Mu\u0308ller", "Frau Mueller backt."),
        ("Aalesund", "Ålesund er fin."),
        ("Hawaii", "Hawaiʻi ist warm."),
        ("п'ять", "Тут пʼять човнів."),
        ("1893", "It was built in 1893² by her."),
        ("tower", "The tower¹ stands."),
        ("orla", "The ORLA™ pump."),
        ("1234", "العدد ١٢٣٤ هنا."),
        ("1234567", "العدد ١٬٢٣٤٬٥٦٧ هنا."),
        ("१२", "Here are 12 boats."),
        ("ΜΎΛΟΣ", "Ο μύλος."),
        ("12 m2", "A hall of 12 m²."),
    ],
)
def test_either_form_finds_the_other(query: str, text: str) -> None:
    assert first(query, "Another text of no use here, with words.", text) == text


def test_every_spelling_of_a_word_scores_like_one_word() -> None:
    texts = [f"The daughter likes {name} in the morning." for name in ("TikTok", "tiktok", "Tik Tok")]
    others = [f"The neighbour walks to mill {number} in the evening." for number in range(30)]
    index = index_of([Passage(str(number), "", text) for number, text in enumerate([*texts, *others])])
    scores = [passage.score for passage in index.search("TikTok", 5)]
    assert len(scores) == 3
    assert max(scores) < 1.2 * min(scores)


def test_a_long_word_is_not_another_one() -> None:
    assert first(SHA[:-1] + "0", f"The mark {SHA} is old.") == ""


def test_forms_do_not_part_the_words_of_a_text() -> None:
    assert analysed("An old getUserName of 1.9.4") == ("An old getUserName of 1.9.4", "1ˑ9ˑ4 get User Name")
    assert analysed("well-known, and so on. Then.") == ("well-known, and so on. Then.", "")
    assert analysed("pre- and post-war days, 3 - 4") == ("pre- and post-war days, 3 - 4", "")


def test_another_letter_is_not_an_accent() -> None:
    assert plain("й ё é が") == "й е e  が "


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("german", "Häuser", "Das Haus ist alt."),
        ("german", "hauser", "Das Haus ist alt."),
        ("french", "généraux", "Un général parle."),
        ("russian", "новый музей", "Новые музеи."),
        ("finnish", "talo", "Taloissa on lämmin."),
        ("arabic", "متاحف", "المتاحف مغلقة."),
    ],
)
def test_endings_are_of_the_language(language: str, query: str, text: str) -> None:
    assert first(query, "Kein x.", text, language=language) == text


def test_common_words_of_the_language_do_not_count() -> None:
    texts = ("Wie und wo und wann der war.", "Der Müller hat eine lange und alte Mühle am Bach hinter dem Dorf.")
    assert first("wo war der Müller", *texts, language="german") == texts[1]


def test_umlauts_are_written_out_only_where_languages_do() -> None:
    assert analysed("Über", transcribe=True) == ("Uber", "Ueber")
    assert first("tueccar", "Tüccar geldi.", language="turkish") == ""
    assert first("Strasse nach Koeln", "Die Straße nach Köln.", language="german") != ""


def test_a_raised_number_ends_a_word_but_not_a_unit() -> None:
    assert [plain(text) for text in ("tower¹", "1893²", "10¹²", "12m²", "башня²", "м²", "H₂O")] == [
        "tower 1", "1893 2", "10 12", "12m2", "башня 2", "м2", "H2O",
    ]  # fmt: skip


_ALPHABET = "aAbB01 2.,-'_:/@?&’é–\n\t٣"


def test_quick_looks_at_kinds_lose_no_form() -> None:
    random = Random(40)
    for _ in range(20_000):
        text = folded("".join(random.choices(_ALPHABET, k=random.randrange(24))))
        expected: list[str] = []
        if re.search("[0-9]", text):
            figures = [code for code in codes(text) if has_figure(code)]
            expected += [*map(forms._whole, figures), *filter(None, map(opaque_code, figures))]
        for number in forms._GROUPED.finditer(text):
            digits = forms._digits(number)
            expected += digits if len(digits) == 1 else [*digits, JOINER.join(digits)]
        expected += spellings(text, forms._kinds(text))
        for word in re.findall(r"[^\W_]+", text):
            if re.search("[a-z][A-Z]|[A-Z0-9][A-Z][a-z]{2}", word):
                expected += forms.pieces(word)
        assert analysed(text)[1].split() == expected, text


def test_codes_of_hostile_text_take_linear_time() -> None:
    text = "1,-3 " * 100_000
    assert list(codes(text)) == []
    assert list(codes(f"{text}a.b1")) == ["a.b1"]


def test_only_what_is_joined_is_a_code() -> None:
    assert list(codes("well-known/(foo.b4r) 1,-3 and well-known 2024-01-31")) == ["foo.b4r", "2024-01-31"]
