"""Nouns for people: roles, ranks and titles, and relatives."""

from __future__ import annotations

from pyrag.embedded.lexicon import words

PERSON_NOUNS = words("person man woman individual people one guy figure someone somebody boy girl")
HONORIFICS = words("""
    hon mr mrs ms dr sir lord lady dame prof professor saint st king queen prince princess president emperor pope
    duke count countess captain general colonel reverend rev baron baroness
""")
DROPPED_TITLES = words("""
    hon sultan lady sir dame margravine president senator captain general dr mr mrs ms rev colonel major first film
    supreme leader lieutenant prof professor
""")
RANKS = words("""
    duke duchess count countess earl king queen prince princess lord baron baroness marquess margrave landgrave elector
    emperor empress viscount
""")
ROLES = words("""
    director directors filmmaker filmmakers producer producers actor actors actress actresses singer singers
    songwriter composer composers musician musicians rapper band duo group author authors writer writers novelist
    poet playwright artist artists painter architect screenwriter dj entertainer star politician businessman
    businesswoman entrepreneur lawyer journalist footballer player coach designer model dancer choreographer
    comedian guitarist drummer pianist conductor theologian philosopher scientist historian pastor bishop officer
    general admiral engineer professor brother brothers sisters sister wife husband son daughter father mother ruler
    emperor king queen president minister executive manager critic explorer soldier teacher physician doctor
    inventor industrialist financier banker merchant millionaire billionaire stockbroker rappers bands musicians
    photographer broadcaster presenter activist philanthropist socialite aristocrat nobleman prophet sultan shah
    noble magnate cricketer wrestler boxer heiress prince princess team side
""")
PERSON_ROLES = ROLES - words("band bands duo group team side")
MAKER_NOUNS = words("director composer performer singer author writer producer screenwriter lyricist founder creator")
FEMALE = words("""
    wife daughter mother sister niece aunt queen actress princess lady duchess countess empress singer-actress
""")
PARTICLES = words("""
    of the de la le les du des da do dos di del della van von der den ter ten und y e al el bin ibn ben af av zu à
""")  # small words inside of names
