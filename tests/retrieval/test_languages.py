"""The language of an index: detected, given, kept by updates, shown, and independent of its history."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyrag.errors import UsageError
from pyrag.retrieval.index import open_index, read_info, update_index
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.removal import remove_from_index
from pyrag.retrieval.words.languages import LANGUAGES, checked_language, detected_language

GERMAN = "Das Haus ist alt und steht in der Stadt. Die Mühle war eine Stunde zu, und der Müller ist nicht da. "
ENGLISH = "The house is old and it stands in the town. The mill was shut for an hour, and they are not here. "
TEXTS = {
    "arabic": "المتحف في طنجة مغلق يوم الاثنين.",
    "chinese": "长江是亚洲最长的河流",
    "danish": "Møllen blev grundlagt af Anna, og den er stadig i brug i byen, men ikke om vinteren.",
    "dutch": "De molen werd gesticht door Anna en is nog steeds in gebruik in de stad.",
    "english": ENGLISH,
    "finnish": "Mylly on Annan perustama ja se on yhä käytössä kaupungissa, mutta ei talvella.",
    "french": "Le moulin a été fondé par Anne et il est encore en service dans la ville.",
    "german": GERMAN,
    "greek": "Ο μύλος ιδρύθηκε από την Άννα και λειτουργεί ακόμα.",
    "hebrew": "המגדל בעכו נבנה בשנת 1893.",
    "hungarian": "A malmot Anna alapította, és még mindig használják a városban.",
    "italian": "Il mulino è stato fondato da Anna ed è ancora in uso nella città.",
    "japanese": "東京は日本の首都で、学校がたくさんある。",
    "korean": "대구에는 섬유 박물관이 있다.",
    "norwegian": "Møllen ble grunnlagt av Anna og er fortsatt i bruk i byen, men ikke om vinteren.",
    "portuguese": "O moinho foi fundado por Ana e ainda está em uso na cidade.",
    "romanian": "Moara a fost fondată de Ana și este încă în funcțiune în oraș.",
    "russian": "Мельница была основана Анной и всё ещё работает в городе, но не зимой.",
    "spanish": "El molino fue fundado por Ana y todavía está en uso en la ciudad.",
    "swedish": "Kvarnen grundades av Anna och är fortfarande i bruk i staden.",
    "thai": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "turkish": "Değirmen Ana tarafından kuruldu ve hâlâ bir kasaba için çok önemli.",
}
OTHERS = {
    "hindi": "हिन्दी भारत की भाषा है।",
    "persian": "این موزه در تهران است و روزهای دوشنبه بسته می‌شود.",
    "polish": "Młyn został założony przez Annę i nadal jest używany w mieście.",
    "ukrainian": "Млин був заснований Анною і досі працює в місті.",
}


@pytest.mark.parametrize(("language", "text"), [*TEXTS.items(), *((("other"), text) for text in OTHERS.values())])
def test_languages_are_detected(language: str, text: str) -> None:
    assert detected_language([text]) == language
    assert language in LANGUAGES


@pytest.mark.parametrize("text", ["", "12.5 kg", "SHA 3f2a x=3", "Marlo Viken; Lauvdal", "\ud800"])
def test_what_tells_nothing_counts_as_english(text: str) -> None:
    assert detected_language([text]) == "english"


def test_languages_have_names() -> None:
    assert checked_language(" German") == "german"
    assert checked_language("auto") == ""
    with pytest.raises(UsageError, match=r"--language does not support 'klingon': choose arabic, .*, or auto to"):
        checked_language("klingon")


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_a_language_does_not_depend_on_the_history(tmp_path: Path) -> None:
    notes, index = written(tmp_path / "notes", a=GERMAN), tmp_path / "ix"
    assert update_index([notes], index).info.language == "german"
    for n in range(9):
        written(notes, **{f"b{n}": f"{ENGLISH} Note {n}. " * 3})
    assert update_index([notes], index).info.language == "english"
    assert update_index([notes], tmp_path / "fresh").info.language == "english"
    query = "houses and Mühlen"
    scores = [[(hit.id, hit.score) for hit in open_index(one).search(query, 20)] for one in (index, tmp_path / "fresh")]
    assert scores[0] == scores[1] != []
    for path in notes.glob("b*"):
        path.unlink()
    assert update_index([notes], index).info.language == "german"
    assert open_index(index).search("Häuser", 1)


def test_a_given_language_stays_until_another_is_given(tmp_path: Path) -> None:
    notes, index = written(tmp_path / "notes", a=ENGLISH, b="One note."), tmp_path / "ix"
    info = update_index([notes], index, parts=(Bm25Part(language="german"),)).info
    assert (info.language, info.detected) == ("german", False)
    written(notes, c=ENGLISH)
    built = update_index([notes], index)
    assert (built.info.language, built.info.detected, built.files_read) == ("german", False, 1)
    remove_from_index(index, [notes / "b.txt"])
    assert read_info(index).language == "german"
    info = update_index([notes], index, parts=(Bm25Part(),)).info
    assert (info.language, info.detected) == ("english", True)


def test_an_empty_index_can_be_filled(tmp_path: Path) -> None:
    notes, index = written(tmp_path / "notes", a=GERMAN), tmp_path / "ix"
    update_index([notes], index)
    (notes / "a.txt").unlink()
    assert update_index([notes], index).info.passages == 0
    shutil.rmtree(notes)
    written(notes, b=GERMAN)
    assert update_index([notes], index).info.language == "german"
