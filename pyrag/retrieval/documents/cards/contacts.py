"""Contacts (`.vcf`, vCard 2.1 to 4.0), one card each, with readable labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.retrieval.documents.cards.card import Card
from pyrag.retrieval.documents.cards.content_lines import ContentLine, content_lines, parts

_LABELS = {
    "FN": "Name", "NICKNAME": "Nickname", "TITLE": "Job title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "E-mail",
    "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "DEATHDATE": "Date of death", "BIRTHPLACE": "Place of birth",
    "DEATHPLACE": "Place of death", "URL": "Website", "CATEGORIES": "Categories", "LANG": "Language",
    "TZ": "Time zone", "GEO": "Coordinates", "IMPP": "Messenger", "RELATED": "Related", "MEMBER": "Member",
    "LABEL": "Address", "PHOTO": "Picture", "LOGO": "Logo", "SOUND": "Sound", "KEY": "Key", "GENDER": "Gender",
    "MAILER": "Mail program", "X-ABDATE": "Date", "X-ABRELATEDNAMES": "Related", "CALURI": "Calendar",
    "FBURL": "Free and busy times", "EXPERTISE": "Expertise", "HOBBY": "Hobby", "INTEREST": "Interest",
}  # fmt: skip
_WRITTEN_BY_PROGRAMS = frozenset(
    """BEGIN END VERSION PRODID REV UID SORT-STRING CLIENTPIDMAP XML X-ABLABEL X-ABADR X-ABSHOWAS X-ABUID
    KIND""".split()  # noqa: SIM905
)
_TYPES = {"cell": "mobile", "x-mobile": "mobile"}
_PLAIN_TYPES = frozenset(
    "voice pref internet x400 dom intl postal parcel text uri msg jpeg png gif main x-other other".split()  # noqa: SIM905
)
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")
_YEARLESS = re.compile(r"--(\d\d)-?(\d\d)")
_TIME = re.compile(r"[T ](\d\d):?(\d\d)(?::?(\d\d))?(?:\.\d+)?(Z|[+-]\d\d:?(?:\d\d)?)?")
_MIDNIGHT = re.compile(r" 00:00(?: UTC)?$")
_OWN_LABEL = re.compile(r"_\$!<(.*)>!\$_")
_BASE64 = re.compile(r"[A-Za-z0-9+/=]+")
_DATES = frozenset(("BDAY", "ANNIVERSARY", "DEATHDATE", "X-ABDATE"))
_GENDERS = {"M": "male", "F": "female", "O": "other", "N": "none", "U": "unknown"}


def contact_cards(data: bytes, remarks: list[str]) -> Iterator[Card]:
    """Yield the contacts of a file, and add a remark on omitted pictures.

    Args:
        data: Content of the file.
        remarks: List to which remarks are added.
    """
    pictures = 0
    lines: list[ContentLine] = []
    after_picture = False
    for line in content_lines(data, remarks):
        if line.name in ("BEGIN", "END") and line.text.upper() == "VCARD":
            if lines:
                yield contact(lines)
            lines = []
        elif line.is_binary:
            pictures += 1
        elif line.name or not after_picture or not _BASE64.fullmatch(line.value.strip()):
            lines.append(line)
        after_picture = line.is_binary or (after_picture and not line.name)
    if lines:
        yield contact(lines)
    if pictures:
        remarks.append(f"left out: pictures ({pictures})")


def contact(lines: list[ContentLine]) -> Card:
    """Return the card of a contact."""
    card = Card()
    own_labels = {line.group: _own_label(line.text) for line in lines if line.name == "X-ABLABEL" and line.group}
    name = next((line.text for line in lines if line.name == "FN" and line.text), "")
    parted = next((line for line in lines if line.name == "N"), None)
    whole = _whole_name(parted)
    organisation = next((", ".join(filter(None, parts(line.value, ";"))) for line in lines if line.name == "ORG"), "")
    card.title = name or whole or organisation
    card.add("Name", name or whole)
    if name and not set(whole.casefold().split()) <= set(name.casefold().split()):
        card.add("Name in full", whole)
    for line in lines:
        if line.name not in _WRITTEN_BY_PROGRAMS and line.name not in ("FN", "N"):
            _add(card, line, own_labels.get(line.group, ""))
    return card


def _whole_name(line: ContentLine | None) -> str:
    """Return a name in the order in which it is spoken."""
    if line is None:
        return ""
    family, first, additional, prefix, suffix = (parts(line.value, ";") + [""] * 5)[:5]
    names = (prefix, first, additional, family, suffix)
    return " ".join(text.replace(",", " ") for text in names if text)


def _own_label(text: str) -> str:
    match = _OWN_LABEL.fullmatch(text)
    return match[1] if match else text


def _add(card: Card, line: ContentLine, own_label: str) -> None:
    label, value = line.label(_LABELS), _value(line)
    if line.name == "NOTE":
        if value:
            card.texts.append(("Note", value))
        return
    if line.name == "ADR":
        label, value = "Address", _address(line)
    elif line.name == "ORG":
        label, value = "Organisation", ", ".join(filter(None, parts(line.value, ";")))
    kinds = list(dict.fromkeys(_TYPES.get(kind, kind) for kind in line.types if kind not in _PLAIN_TYPES))
    if line.name == "TEL" and "fax" in kinds:
        label, kinds = "Fax", [kind for kind in kinds if kind != "fax"]
    if own_label:
        kinds = [own_label]
    card.add(f"{label} ({', '.join(kinds)})" if kinds and line.name else label, value)
    if line.name == "BDAY" and _DATE.fullmatch(value):
        card.metadata["birthday"] = value


def _value(line: ContentLine) -> str:
    if line.name in _DATES:
        return _MIDNIGHT.sub("", iso_date(line.text))
    if line.name == "GENDER":
        sex, _, rest = line.text.partition(";")
        return "; ".join(filter(None, (_GENDERS.get(sex, sex), rest)))
    if line.name in ("CATEGORIES", "NICKNAME"):
        return ", ".join(filter(None, parts(line.value, ",")))
    return re.sub(r"^(?:tel|mailto|geo|xmpp|skype):", "", line.text, flags=re.IGNORECASE)


def iso_date(text: str) -> str:
    """Return a date, or date and time, in ISO form; a date without a year as month and day. Other texts stay."""
    if match := _YEARLESS.match(text):
        return f"{match[1]}-{match[2]} (month and day)"
    match = _DATE.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    time = _TIME.fullmatch(rest)
    if rest and time is None:
        return text
    date = "-".join(match.groups())
    if time is None:
        return date
    seconds = f":{time[3]}" if time[3] and time[3] != "00" else ""
    zone = " UTC" if time[4] == "Z" else time[4] or ""
    return f"{date} {time[1]}:{time[2]}{seconds}{zone}"


def _address(line: ContentLine) -> str:
    box, extended, street, city, region, code, country = (parts(line.value, ";") + [""] * 7)[:7]
    town = " ".join(filter(None, (code, city)))
    address = ", ".join(filter(None, (box, extended, street, town, region, country)))
    return address or line.parameter("LABEL")
