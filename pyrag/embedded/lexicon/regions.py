"""Names of regions: countries with their adjectives, states and continents."""

from __future__ import annotations

from pyrag.embedded.lexicon import names_of

_COUNTRIES = """
Afghanistan:Afghan;Albania:Albanian;Algeria:Algerian;Andorra:Andorran;Angola:Angolan;Argentina:Argentine|Argentinian;
Armenia:Armenian;Australia:Australian;Austria:Austrian;Azerbaijan:Azerbaijani;Bahamas:Bahamian;Bahrain:Bahraini;
Bangladesh:Bangladeshi;Barbados:Barbadian;Belarus:Belarusian;Belgium:Belgian;Belize:Belizean;Benin:Beninese;
Bhutan:Bhutanese;Bolivia:Bolivian;Bosnia and Herzegovina:Bosnian;Botswana:Botswanan;Brazil:Brazilian;Brunei:Bruneian;
Bulgaria:Bulgarian;Burkina Faso:Burkinabé;Burma:Burmese;Burundi:Burundian;Cambodia:Cambodian;Cameroon:Cameroonian;
Canada:Canadian;Cape Verde:Cape Verdean;
Central African Republic:Central African;Chad:Chadian;Chile:Chilean;China:Chinese;
Colombia:Colombian;Comoros:Comorian;Congo:Congolese;Costa Rica:Costa Rican;Croatia:Croatian;Cuba:Cuban;Cyprus:Cypriot;
Czech Republic:Czech;Czechoslovakia:Czechoslovak|Czechoslovakian;Denmark:Danish;Djibouti:Djiboutian;
Dominican Republic:Dominican;East Germany:East German;East Timor:Timorese;Ecuador:Ecuadorian;Egypt:Egyptian;
El Salvador:Salvadoran;England:English;Equatorial Guinea:Equatoguinean;Eritrea:Eritrean;Estonia:Estonian;
Ethiopia:Ethiopian;Faroe Islands:Faroese;Fiji:Fijian;Finland:Finnish;France:French;Gabon:Gabonese;Gambia:Gambian;
Georgia:Georgian;Germany:German;Ghana:Ghanaian;Greece:Greek;Greenland:Greenlandic;Grenada:Grenadian;
Guatemala:Guatemalan;Guinea:Guinean;Guyana:Guyanese;Haiti:Haitian;Honduras:Honduran;Hong Kong:Hong Kong;
Hungary:Hungarian;Iceland:Icelandic;India:Indian;Indonesia:Indonesian;Iran:Iranian|Persian;Iraq:Iraqi;Ireland:Irish;
Israel:Israeli;Italy:Italian;Ivory Coast:Ivorian;Jamaica:Jamaican;Japan:Japanese;Jordan:Jordanian;
Kazakhstan:Kazakhstani|Kazakh;Kenya:Kenyan;Korea:Korean;Kosovo:Kosovan;Kuwait:Kuwaiti;Kyrgyzstan:Kyrgyz|Kyrgyzstani;
Laos:Laotian;Latvia:Latvian;Lebanon:Lebanese;Lesotho:Basotho;Liberia:Liberian;Libya:Libyan;
Liechtenstein:Liechtensteiner;Lithuania:Lithuanian;Luxembourg:Luxembourgish|Luxembourgian;Macedonia:Macedonian;
North Macedonia:Macedonian;Madagascar:Malagasy;Malawi:Malawian;Malaysia:Malaysian;Maldives:Maldivian;Mali:Malian;
Malta:Maltese;Mauritania:Mauritanian;Mauritius:Mauritian;Mexico:Mexican;Moldova:Moldovan;Monaco:Monégasque;
Mongolia:Mongolian;Montenegro:Montenegrin;Morocco:Moroccan;Mozambique:Mozambican;Myanmar:Burmese;Namibia:Namibian;
Nepal:Nepalese|Nepali;Netherlands:Dutch;New Zealand:New Zealand;Nicaragua:Nicaraguan;Niger:Nigerien;Nigeria:Nigerian;
North Korea:North Korean;Northern Ireland:Northern Irish;Norway:Norwegian;Oman:Omani;Pakistan:Pakistani;
Palestine:Palestinian;Panama:Panamanian;Papua New Guinea:Papua New Guinean;Paraguay:Paraguayan;Peru:Peruvian;
Philippines:Filipino|Philippine|Filipina;Poland:Polish;Portugal:Portuguese;Prussia:Prussian;Puerto Rico:Puerto Rican;
Qatar:Qatari;Romania:Romanian;Russia:Russian;Rwanda:Rwandan;Samoa:Samoan;San Marino:Sammarinese;
Saudi Arabia:Saudi Arabian|Saudi;Scotland:Scottish|Scots;Senegal:Senegalese;Serbia:Serbian|Serb;
Seychelles:Seychellois;Sierra Leone:Sierra Leonean;Singapore:Singaporean;Slovakia:Slovak|Slovakian;
Slovenia:Slovenian|Slovene;Solomon Islands:Solomon Islander;Somalia:Somali;South Africa:South African;
South Korea:South Korean;South Sudan:South Sudanese;Soviet Union:Soviet;Spain:Spanish;Sri Lanka:Sri Lankan;
Sudan:Sudanese;Suriname:Surinamese;Swaziland:Swazi;Eswatini:Swazi;Sweden:Swedish;Switzerland:Swiss;Syria:Syrian;
Taiwan:Taiwanese;Tajikistan:Tajik|Tajikistani;Tanzania:Tanzanian;Thailand:Thai;Tibet:Tibetan;Togo:Togolese;
Tonga:Tongan;Trinidad and Tobago:Trinidadian;Tunisia:Tunisian;Turkey:Turkish;Turkmenistan:Turkmen;Uganda:Ugandan;
Ukraine:Ukrainian;United Arab Emirates:Emirati;United Kingdom:British|UK|U.K.;
United States:American|US|U.S.|USA|U.S.A.;United States of America:American;Uruguay:Uruguayan;
Uzbekistan:Uzbek|Uzbekistani;Vanuatu:Ni-Vanuatu;Vatican City:Vatican;Venezuela:Venezuelan;
Vietnam:Vietnamese;Wales:Welsh;West Germany:West German;Yemen:Yemeni;Yugoslavia:Yugoslav|Yugoslavian;Zambia:Zambian;
Zimbabwe:Zimbabwean;Ottoman Empire:Ottoman;Roman Empire:Roman;Byzantine Empire:Byzantine;Bermuda:Bermudian;
Falkland Islands:Falkland;Guam:Guamanian;Gibraltar:Gibraltarian;Macau:Macanese;
"""
ADJECTIVES: dict[str, str] = {}  # "Swedish" -> "Sweden"
COUNTRIES: dict[str, str] = {}  # "Sweden" -> "Swedish"
for _entry in _COUNTRIES.replace("\n", "").strip(";").split(";"):
    _country, _, _names = _entry.partition(":")
    COUNTRIES[_country] = _names.split("|")[0]
    for _name in _names.split("|"):
        ADJECTIVES.setdefault(_name, _country)
COUNTRIES |= dict.fromkeys(("USA", "U.S.", "US", "U.S.A.", "America"), "American")
COUNTRIES |= dict.fromkeys(("UK", "U.K.", "Britain", "Great Britain"), "British")
PEOPLES = frozenset(ADJECTIVES) | {
    "Assyrian", "Babylonian", "Basque", "Bengali", "Catalan", "Castilian", "Flemish", "Florentine", "Frankish",
    "Genoese", "Hawaiian", "Jewish", "Kurdish", "Manx", "Mongol", "Norman", "Punjabi", "Québécois", "Sicilian",
    "Tamil", "Tatar", "Telugu", "Venetian", "Bavarian", "Bohemian", "Breton", "Cornish", "Moravian", "Saxon",
    "Afro-American", "African-American", "Native American", "Anglo-Irish",
}  # fmt: skip

STATES = names_of("""
    Alabama; Alaska; Arizona; Arkansas; California; Colorado; Connecticut; Delaware; Florida; Georgia; Hawaii;
    Idaho; Illinois; Indiana; Iowa; Kansas; Kentucky; Louisiana; Maine; Maryland; Massachusetts; Michigan;
    Minnesota; Mississippi; Missouri; Montana; Nebraska; Nevada; New Hampshire; New Jersey; New Mexico; New York;
    North Carolina; North Dakota; Ohio; Oklahoma; Oregon; Pennsylvania; Rhode Island; South Carolina; South Dakota;
    Tennessee; Texas; Utah; Vermont; Virginia; Washington; West Virginia; Wisconsin; Wyoming; New South Wales;
    Victoria; Queensland; Tasmania; South Australia; Western Australia; Bavaria; Saxony; Hesse; Andhra Pradesh;
    Assam; Bihar; Goa; Gujarat; Haryana; Karnataka; Kerala; Madhya Pradesh; Maharashtra; Odisha; Punjab; Rajasthan;
    Tamil Nadu; Telangana; Uttar Pradesh; West Bengal; Himachal Pradesh; Jharkhand; Manipur; Ontario; Quebec;
    Alberta; British Columbia; Manitoba; Saskatchewan; Nova Scotia; New Brunswick; Sonora; Jalisco; São Paulo; Minas
    Gerais; Bahia; Paraná
""")
CONTINENTS = names_of("Africa; Antarctica; Asia; Europe; North America; South America; Oceania; Central America")
