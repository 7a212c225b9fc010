"""Table of units by kind, with their names and their sizes in the base unit of the kind."""

from __future__ import annotations

# A line without ":" names a kind. The others hold entries "names:size", separated by "|". Plurals with "s" need no
# entry, and "_" is a space. "~" and a share follow the size of a unit that differs between countries or uses.
UNITS = """
mass
mg milligram milligramm миллиграмм:1e-6|g gram gramme gramm grammi gramo gramos gramas г грамм граммов グラム 克:0.001
kg kilo kilogram kilogramme kilogramm kilogramos quilo quilos chilo chili chilogrammi кг килограмм:1
килограммов キログラム 公斤 千克:1
µg μg microgram:1e-9
t tonne metric_ton metric_tonne tonnen tonelada toneladas tonnellata tonnellate т тонн тонны トン 吨:1000
ton tons:1000~0.11|short_ton:907.18474|long_ton:1016.0469088|kilotonne kilotonnen:1e6|megatonne:1e9
quintal zentner:100~0.55|oz ounce:0.028349523125~0.1|lb lbs pound pfund:0.45359237~0.11|stone:6.35029318
carat:0.0002|hundredweight cwt:50~0.11
length
nm nanometre nanometer:1e-9|µm μm micrometre micrometer micron:1e-6
mm millimetre millimeter millimètre milímetro millimetri миллиметров мм 毫米:0.001
cm centimetre centimeter zentimeter centimètre centímetro centimetri см сантиметров センチ センチメートル 厘米:0.01
dm decimetre decimeter dezimeter:0.1|m metre meter metern mètre metro metros metri м метр метра метров メートル 米:1
km kilometre kilometer kilometern kilomètre kilómetro quilômetro quilómetro chilometro chilometri км:1000
километр километра километров キロ キロメートル 公里 千米:1000
in inch inches zoll ″:0.0254|ft foot feet ′:0.3048|yd yard:0.9144|mi mile miles statute_mile:1609.344
nautical_mile nmi seemeile seemeilen:1852|fathom:1.8288|furlong:201.168|au astronomical_unit:149597870700
light-year light_year lightyear lichtjahr lichtjahre ly:9.4607304725808e15|parsec:3.0856775814913673e16
area
ha hectare hektar hectárea hectárea ettari hectares га гектаров 公顷 ヘクタール:10000|acre:4046.8564224|sqm:1
sqft:0.09290304|sqkm:1e6|sqmi:2589988.110336
volume
ml millilitre milliliter millilitro mililitro мл 毫升:1e-6|cl centilitre centiliter:1e-5|dl decilitre deciliter:1e-4
l litre liter litro litri л литр литра литров リットル 升:0.001|hl hectolitre hectoliter hektoliter:0.1|cc ccm:1e-6
gallon gal:0.003785411784~0.21|us_gallon u.s._gallon:0.003785411784|imperial_gallon:0.00454609
pint:0.000473176473~0.21|quart:0.000946352946~0.21|fluid_ounce fl_oz:2.95735295625e-5~0.05
barrel bbl:0.158987294928~0.05
time
ns nanosecond:1e-9|µs μs microsecond:1e-6|ms millisecond millisekunde millisekunden:0.001
s sec second seconde sekunde sekunden segundo secondo secondi секунд с сек 秒:1
min minute minuten minuto minuti минут минуты мин 分 分钟 分鐘 分間:60
h hr hour stunde stunden heure hora ora ore uur uren час часа часов ч 小时 小時 時間:3600
d day tag tage tagen jour día dia giorno giorni dag dagen день дня дней 天 日間:86400
week woche wochen semaine semana settimana settimane weken недель недели 周:604800~0.001
month monat monate monaten mois mes meses mese mesi maand maanden месяц месяца месяцев ヶ月 个月:2629800~0.08
year yr jahr jahre jahren ans année año ano anno anni jaar jaren год года лет 年:31557600~0.003|fortnight:1209600
decade jahrzehnt:315576000~0.003|century centuries jahrhundert jahrhunderte:3155760000~0.001
speed
kph kmh km/h:0.2777777777777778|mph:0.44704|knot kn knoten:0.5144444444444445
temperature
°c °_c ℃ degree_celsius degrees_celsius celsius degrees_c degree_c grad_celsius grad_c градусов_цельсия 摄氏度:1
°f °_f ℉ degree_fahrenheit degrees_fahrenheit fahrenheit degrees_f degree_f:0.5555555555555556|kelvin:1.0
data
byte:1|kb kilobyte:1e3|mb megabyte:1e6|gb gigabyte:1e9|tb terabyte:1e12|pb petabyte:1e15|kib kibibyte:1024
mib mebibyte:1048576|gib gibibyte:1073741824|tib tebibyte:1099511627776|bit:0.125|kbit kilobit:125
mbit megabit:125000|gbit gigabit:1.25e8|tbit terabit:1.25e11|kbps:125/s|mbps:125000/s|gbps:1.25e8/s
power
w watt:1|kw kilowatt:1000|megawatt:1e6|gw gigawatt:1e9|milliwatt:0.001|terawatt tw:1e12|horsepower hp ps:740~0.02
energy
j joule:1|kj kilojoule:1000|megajoule:1e6|kwh kilowattstunde kilowattstunden:3.6e6|wh:3600|mwh:3.6e9|gwh:3.6e12
kcal kilocalorie:4184|calorie:4184~0.9991
frequency
hz hertz:1|khz kilohertz:1000|mhz megahertz:1e6|ghz gigahertz:1e9
pressure
pa pascal:1|hpa:100|kpa:1000|bar:1e5|mbar:100|psi:6894.757293168
share
% percent per_cent prozent pour_cent процентов ％ 百分点:1|‰ permille:0.1
"""
# Units that can only be compared with themselves.
OWN_UNITS = """
° degree degrees grad|decibel db|volt v|ampere amp|ohm|lumen lm|candela cd|pixel px|megapixel mp|rpm|bpm|ppm|league
cubit
bushel|cup|tablespoon tbsp|teaspoon tsp|hand|acre-foot|mol|newton|kilonewton|tesla|lux
"""
# Symbols whose meaning depends on capitals, which are tried before all others: kind and size.
CASED_UNITS = {
    "MW": ("power", 1e6), "mW": ("power", 1e-3), "MJ": ("energy", 1e6), "mJ": ("energy", 1e-3), "Mt": ("mass", 1e9),
    "kt": ("mass", 1e6), "K": ("temperature", 1.0), "B": ("data", 1.0), "nm": ("length", 1e-9),
    "kB": ("data", 1e3), "KB": ("data", 1e3), "kb": ("kb or kbit", 1.0), "Kb": ("kb or kbit", 1.0),
    "Mb": ("MB or Mbit", 1.0), "Gb": ("GB or Gbit", 1.0),
    "Tb": ("TB or Tbit", 1.0), "Mbit": ("data", 125e3), "Gbit": ("data", 125e6), "kHz": ("frequency", 1e3),
}  # fmt: skip
OFFSETS = {"°f": -32.0, "kelvin": -273.15, "K": -273.15}  # offsets of scales with another zero
