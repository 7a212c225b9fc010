"""Words whose language shows whether a text uses decimal commas or decimal points."""

from __future__ import annotations

# Words that several languages share, or that are part of names ("la", "von", "den"), are left out.
_POINT_WORDS = """
the of and about approximately around nearly almost people inhabitants residents with has have are were had some
under than from between there it its their which that this by at for million billion thousand trillion hundred
dozen metres metre feet foot inches miles yards pounds ounces acres gallons kilometres meters kilometers liters
years year hours hour seconds days weeks months members rooms employees students copies dollars degrees square
cubic long tall high deep wide heavy weighs weighed cows seats
"""
_COMMA_WORDS = """
das dem ein eine einen einem einer und ist sind wurde zum zur bei über unter etwa rund ungefähr knapp mehr als
beträgt haben einwohner einwohnern stück menschen personen mitarbeiter jahre jahren stunden tage monate minuten
sekunden gramm kilogramm tonnen franken quadratmeter quadratkilometer preis menge masse gewicht länge breite höhe
bestand anzahl betrag umsatz fläche temperatur
une sont était avec dans environ habitants personnes mètres kilomètres grammes heures jours ans années mois prix
quantité poids longueur largeur hauteur
unos aproximadamente más habitantes personas metros kilómetros gramos toneladas horas días años meses precio
cantidad peso longitud altura
della dello dei sono più abitanti persone metri chilometri grammi tonnellate giorni anni mesi prezzo quantità
lunghezza altezza
uma foi cerca mais pessoas quilômetros quilómetros gramas anos preço quantidade comprimento
het een zijn ongeveer bijna meer inwoners mensen uur dagen jaar maanden prijs aantal lengte hoogte
og på indbyggere innbyggere invånare och är som cirka kronor kroner år asukasta noin
mieszkańców osób metrów kilometrów gramów godzin dni ilość długość około
на жителей человек метров километров граммов тонн литров часов дней лет года рублей цена количество около
obyvatel metrů let kusů locuitori oameni nüfus kişi yıl adet lakosok penduduk orang κάτοικοι μέτρα χρόνια
"""
POINT_WORDS = frozenset(_POINT_WORDS.split())
COMMA_WORDS = frozenset(_COMMA_WORDS.split())
