"""Names of the months in many languages, without accents, in all their grammatical forms.

The names are from CLDR 45, taken from Babel; `tests/helpers/test_locales.py` checks this.
"""

from __future__ import annotations

import unicodedata

_NAMES = """
    enero gener gennaio ianuarie jaanuar janeiro janner januar januara januari january janvaris janvier leden
    ledna ocak sausio sausis sijecanj sijecnja styczen stycznia tammikuu tammikuuta ιανουαριοσ ιανουαριου січень
    січня январь января януари ינואר يناير มกราคม;
    febbraio febrer febrero februar februara februari februarie februaris february fevereiro fevrier helmikuu
    helmikuuta lutego luty subat unor unora vasario vasaris veebruar veljaca veljace φεβρουαριοσ φεβρουαριου
    лютии лютого февраль февраля февруари פברואר فبراير;
    brezen brezna kovas kovo maaliskuu maaliskuuta maart marc marca march marcius marco marec maret mars mart
    martie marts marz marzec marzo ozujak ozujka μαρτιοσ μαρτιου березень березня март марта מרץ مارس;
    abril april aprila aprile aprilie aprilis aprill avril balandis balandzio duben dubna huhtikuu huhtikuuta
    kwiecien kwietnia nisan travanj travnja απριλιοσ απριλιου апрель апреля април квітень квітня אפריל ابريل
    เมษายน;
    geguze geguzes kveten kvetna maggio mai maig maijs maio maj maja majus may mayo mayıs mei svibanj svibnja
    toukokuu toukokuuta μαιοσ μαιου маи мая травень травня מאי مايو พฤษภาคม;
    birzelio birzelis cerven cervna czerwca czerwiec giugno haziran iunie juin jun juna june junho juni junij
    junijs junio junius juny juuni kesakuu kesakuuta lipanj lipnja ιουνιοσ ιουνιου июнь июня червень червня юни
    יוני يونيو;
    cervence cervenec heinakuu heinakuuta iulie juillet jul jula julho juli julij julijs julio juliol julius
    july juuli liepa liepos lipca lipiec luglio srpanj srpnja temmuz ιουλιοσ ιουλιου июль июля липень липня юли
    יולי يوليو กรกฎาคม;
    agost agosto agustos agustus aout august augusta augusti augusts augustus augusztus avgust elokuu elokuuta
    kolovoz kolovoza rugpjucio rugpjutis sierpien sierpnia srpen srpna αυγουστοσ αυγουστου август августа
    серпень серпня אוגוסט اغسطس अगसत;
    eylul rugsejis rugsejo rujan rujna septembar september septembra septembre septembrie septembris septiembre
    setembre setembro setiembre settembre syyskuu syyskuuta szeptember wrzesien wrzesnia zari σεπτεμβριοσ
    σεπτεμβριου вересень вересня сентябрь сентября септември ספטמבר سبتمبر;
    ekim lokakuu lokakuuta october octobre octombrie octubre oktobar oktober oktobra oktobris oktoober ottobre
    outubro pazdziernik pazdziernika rijen rijna spalio spalis οκτωβριοσ οκτωβριου жовтень жовтня октомври
    октябрь октября אוקטובר اكتوبر ตลาคม;
    kasım lapkricio lapkritis listopad listopada listopadu marraskuu marraskuuta noiembrie novembar november
    novembra novembre novembris novembro noviembre studeni studenoga νοεμβριοσ νοεμβριου листопад листопада
    ноември ноябрь ноября נובמבר نوفمبر;
    aralık decembar december decembra decembre decembrie decembris desember desembre detsember dezember dezembro
    dicembre diciembre grudnia grudzien gruodis gruodzio joulukuu joulukuuta prosinac prosinca prosince prosinec
    δεκεμβριοσ δεκεμβριου грудень грудня декабрь декабря декември דצמבר ديسمبر
"""
_SHORT = """
    ene gen jan janv янв;
    feb fev fevr февр;
    mar mrt мар;
    abr apr avr апр;
    mag;
    giu июн;
    juil lug июл;
    ago aug авг;
    sep sept set сент;
    oct okt ott out окт;
    nov нояб;
    dec dez dic дек
"""


def _by_name(table: str) -> dict[str, int]:
    return {name: number for number, names in enumerate(table.split(";"), 1) for name in names.split()}


MONTHS = _by_name(_NAMES)
SHORT_MONTHS = _by_name(_SHORT)


def month_of(word: str, *, short: bool = True) -> int:
    """Return the number of the month that a word names; 0 for another word.

    Args:
        word: The word in any case, with or without accents and a final point.
        short: Whether to accept abbreviations, some of which are ordinary words in other languages ("set", "ago").
    """
    name = plain_word(word)
    number = MONTHS.get(name) or MONTHS.get(name.removeprefix("ב"))
    return number or (SHORT_MONTHS.get(name, 0) if short else 0)


def plain_word(word: str) -> str:
    """Return a word in lower case, without accents and without a final point."""
    letters = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in letters if not unicodedata.combining(c)).strip(".").replace("ς", "σ")
