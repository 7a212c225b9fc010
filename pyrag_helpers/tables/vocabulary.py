"""Words of conditions on tables: general words, kinds of rows and columns, truth values and times."""

# ruff: noqa: E501 - a list of words is easier to read, compare and sort on one line

from __future__ import annotations

import operator

SMALL = frozenset(
    """a an the of in on at by for from to with and or that which who is are was were be been do does did has have had there
    all any each every our we us i my you your their its it he she they during within among as per how what when whose them
    these those this into than between number numbers many much""".split()  # noqa: SIM905
)
"""Words that are never a cell."""

PLAIN = SMALL | frozenset(
    """listed table list file row rows entry entries record records sheet column total sum amount count altogether together
    overall combined currently now still located based work works working worked lie lies come comes came made given having
    name names named called year years month value values cost costs sold sell sells earn earns earned paid pay pays weigh
    weighs hold holds belong belongs assigned dated placed place run worth both priced costing contain contains set money
    different distinct unique go goes went get gets got done take taken happened published released appeared issued founded
    established built cast written played held printed date dates scheduled registered recorded bought buy ordered
    only""".split()  # noqa: SIM905
)
"""Words of a condition that exclude no row, unless they are cells."""

KINDS = (
    "employees employee staff personnel workers worker colleagues colleague members member team people persons person".split(),  # noqa: SIM905
    "products product items item articles article goods price prices catalogue stock inventory things thing".split(),  # noqa: SIM905
    "invoices invoice bills bill payments payment expenses expense".split(),  # noqa: SIM905
    "orders order sales sale purchases purchase transactions transaction".split(),  # noqa: SIM905
    "customers customer clients client suppliers supplier vendors vendor companies company".split(),  # noqa: SIM905
    "tasks task tickets ticket issues issue jobs job projects project".split(),  # noqa: SIM905
    "cities city towns town places place locations location offices office".split(),  # noqa: SIM905
)
COLUMN_KINDS = tuple(
    frozenset(kind.split())
    for kind in (
        "price cost costs fee amount charge expensive rate cheap rent fare toll tariff premium tuition admission",
        "temperature hot warm cold",
        "amount sum total value spend spent paid pay price cost money billed invoiced",
        "gift donation donated amount",
        "raised amount",
        "revenue sales turnover",
        "salary pay wage wages earnings income earn earns paid",
        "weight mass heavy weigh weighs",
        "length long short distance",
        "height high tall elevation altitude short",
        "depth deep",
        "width wide breadth",
        "age old",
        "population inhabitants people residents",
        "area size large big surface",
        "quantity stock units unit pieces count number qty",
        "duration time minutes hours days long short take takes",
        "speed fast",
        "score points rating grade mark",
        "sold units quantity qty",
    )
)
TIME_KINDS = tuple(
    frozenset(kind.split())
    for kind in (
        "departure departures dep depart departs departed departing leave leaves leaving left",
        "arrival arrivals arr arrive arrives arrived arriving reach reaches",
        "start starts started starting begin begins began beginning from",
        "end ends ended ending finish finishes finished until to",
        "open opens opened opening",
        "close closes closed closing shut shuts",
    )
)
"""Words about columns of times of the day: names of the columns, and verbs."""

HOURS = frozenset(
    "hours hour h hh worked working overtime downtime uptime flight journey trip travel driving walking".split()  # noqa: SIM905
)
DURATIONS = HOURS | frozenset(
    """duration durations length took taken elapsed runtime running playing lap cooking waiting wait delay idle rest break
    sleep""".split()  # noqa: SIM905
)
"""Words in the names of columns of durations such as "2:45"."""

MINUTES = frozenset("minutes minute min mins m mm seconds sec s ss lap song track".split())  # noqa: SIM905
"""Words in the names of columns that say what comes before the colon of a duration."""

_MADE = frozenset(
    """built founded established opened completed constructed made manufactured created introduced planted laid launched
    released published issued produced vintage born birth birthday""".split()  # noqa: SIM905
)
ORIGINS = {
    "origin": _MADE,
    "addition": _MADE
    | frozenset(["joined", "hired", "started", "start", "since", "added", "acquired", "bought", "purchased"]),
}
"""Words in the names of columns of dates that show what is the oldest, and what is the newest."""

PERSONS = frozenset("name employee person who staff member colleague student rep representative".split())  # noqa: SIM905
"""Names of columns that answer "who"."""

KEYS = frozenset("id ids no nr number name code ref reference title key".split())  # noqa: SIM905
"""Words for keys and names that follow the thing in a column's name, as in "order id"."""

GROUPS = frozenset("team stock price prices inventory catalogue location locations office offices place places".split())  # noqa: SIM905
"""Names of columns that name no single thing of their kind, as a team is not one of its members."""

IDS = KEYS - {"name", "title"}
NEGATIVE = frozenset(
    ("not", "no", "without", "except", "neither", "nor", "never", "other", "but", "besides", "outside", "excluding", "lacking", "missing")
)  # fmt: skip
TRUE = frozenset(("yes", "true", "x", "y", "1", "done", "ja"))
FALSE = frozenset(("no", "false", "n", "0", "none", "", "nein"))
MARKS = dict.fromkeys("✓✔☑✅", "yes") | dict.fromkeys("✗✘☐❌✕", "no")
"""Marks for yes and no."""

MONEY = frozenset("euro euros dollar dollars pound pounds eur usd gbp chf crowns francs".split())  # noqa: SIM905
CURRENCIES = {
    "francs": ("CHF", "XAF"), "pounds": ("GBP", "£"), "crowns": ("SEK", "NOK", "DKK", "CZK", "ISK"), "chf": ("Fr.",),
}  # fmt: skip
"""Words for money that several countries use, with the codes and signs that they may mean."""

INCOMES = frozenset(
    """revenue gross turnover sales profit income salary pay wage balance debt donation donated budget raised spent total
    value loan discount deposit savings earnings""".split()  # noqa: SIM905
)
"""Words in the names of columns of money that are not prices."""

UNIT_COLUMNS = frozenset("currency ccy unit uom währung devise einheit".split())  # noqa: SIM905
"""Names of columns that hold the unit of a row's numbers."""

TOTALS = frozenset(
    "total totals subtotal sum average mean median overall summe gesamt gesamtsumme zwischensumme somme totaal totale suma".split()  # noqa: SIM905
)
"""First cells of rows that sum up the rows above them."""

IRREGULAR = {
    "led": "lead", "sent": "send", "bought": "buy", "taught": "teach", "held": "hold", "born": "birth", "wrote": "write",
    "written": "write", "drove": "drive", "driven": "drive", "built": "build", "owned": "owner", "ran": "run", "lent": "lend",
    "begun": "begin", "began": "begin", "ended": "end", "left": "leave",
}  # fmt: skip
"""Participles and past forms, with the beginning of the name of a column that they may be about."""

QUANTITIES = frozenset("quantity quantities qty units unit pieces count counts copies stock sold number".split())  # noqa: SIM905
"""Names of columns that count things of one kind."""

PIECES = frozenset("quantity quantities qty units unit pieces piece ordered sold bought of".split())  # noqa: SIM905
"""Words of the name of a column that counts the pieces of an order."""

COMPARED = {
    **dict.fromkeys(("<", "before", "prior to", "earlier than", "fewer than", "less than", "under", "below", "lower than"), operator.lt),
    **dict.fromkeys(("until", "till", "by", "at most", "no more than", "not more than", "up to", "maximum of"), operator.le),
    **dict.fromkeys(("since", "from", "between", "starting", "at least", "no less than", "not less than", "minimum of"), operator.ge),
    **dict.fromkeys(("at", "in", "exactly", "equal to"), operator.eq),
    **dict.fromkeys((">", "after", "later than", "more than", "over", "above", "greater than", "higher than"), operator.gt),
    **dict.fromkeys(("exceeding", "exceeds", "exceed"), operator.gt),
}  # fmt: skip
"""Words before a limit or a time, with the comparison that they mean."""

COMPARATIVES = {
    "older": ("age", ">"), "younger": ("age", "<"), "heavier": ("weight", ">"), "lighter": ("weight", "<"), "longer": ("long", ">"),
    "shorter": ("short", "<"), "taller": ("height", ">"), "higher": ("height", ">"), "lower": ("height", "<"), "deeper": ("depth", ">"),
    "wider": ("width", ">"), "faster": ("speed", ">"), "slower": ("speed", "<"), "cheaper": ("price", "<"), "dearer": ("price", ">"),
    "larger": ("area", ">"), "bigger": ("area", ">"), "smaller": ("area", "<"),
}  # fmt: skip
MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
