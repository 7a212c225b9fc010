"""Words of conditions on tables: general words, kinds of rows and columns, truth values and months."""

# ruff: noqa: E501 - lists of words are easier to read and compare on one line

from __future__ import annotations

PLAIN = frozenset(
    """a an the of in on at by for from to with and or that which who is are was were be been do does did has have had there
    all any each every our we us i my you your their its it listed table list file row rows entry entries record records
    sheet column during within among as per number numbers many much total sum amount count altogether together overall
    combined how what when whose them these those this currently now still located based work works working
    lie lies come comes made given having name names named called year years month value values cost costs sold sell sells earn
    earns paid pay pays weigh weighs hold holds belong belongs assigned dated placed run""".split()  # noqa: SIM905
)
KINDS = (
    "employees employee staff personnel workers worker colleagues colleague members member team".split(),  # noqa: SIM905
    "products product items item articles article goods price prices catalogue stock inventory things thing".split(),  # noqa: SIM905
    "invoices invoice bills bill payments payment expenses expense".split(),  # noqa: SIM905
    "orders order sales sale purchases purchase transactions transaction".split(),  # noqa: SIM905
    "customers customer clients client suppliers supplier vendors vendor companies company".split(),  # noqa: SIM905
    "tasks task tickets ticket issues issue jobs job projects project".split(),  # noqa: SIM905
    "cities city towns town places place locations location offices office".split(),  # noqa: SIM905
)
COLUMN_KINDS = (
    frozenset(("price", "cost", "costs", "fee", "amount", "charge", "expensive", "rate")),
    frozenset(("amount", "sum", "total", "value")),
    frozenset(("revenue", "sales", "turnover")),
    frozenset(("salary", "pay", "wage", "wages", "earnings", "income", "earn", "earns", "paid")),
    frozenset(("weight", "mass", "heavy", "weigh", "weighs")),
    frozenset(("length", "long", "distance")),
    frozenset(("height", "high", "tall", "elevation", "altitude")),
    frozenset(("depth", "deep")),
    frozenset(("width", "wide", "breadth")),
    frozenset(("age", "old")),
    frozenset(("population", "inhabitants", "people", "residents")),
    frozenset(("area", "size", "large", "big", "surface")),
    frozenset(("quantity", "stock", "units", "pieces", "count", "number", "qty")),
    frozenset(("duration", "time", "minutes", "hours", "days", "long", "take", "takes")),
    frozenset(("speed", "fast")),
    frozenset(("score", "points", "rating", "grade", "mark")),
)
NEGATIVE = frozenset(
    ("not", "no", "without", "except", "neither", "nor", "never", "other", "than", "but", "only", "besides")
)
TRUE = frozenset(("yes", "true", "x", "y", "1", "done", "ja"))
FALSE = frozenset(("no", "false", "n", "0", "none", "", "nein"))
MONEY = frozenset("euro euros dollar dollars pound pounds eur usd gbp chf crowns francs".split())  # noqa: SIM905
UNIT_COLUMNS = frozenset("currency ccy unit uom währung devise einheit".split())  # noqa: SIM905
"""Names of columns that hold the unit of a row's numbers."""

MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
