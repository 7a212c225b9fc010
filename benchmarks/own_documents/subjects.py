"""Subjects of invented documents: names of things, countable and measurable properties, and who is responsible."""

# ruff: noqa: E501 - one subject is easier to read on few lines

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """Countable property: "seats 340 people".

    Attributes:
        column: Heading of a table's column.
        units: Plural noun of what is counted.
        verb: Base form of the verb.
        verbs: Third person of the verb.
        low: Smallest value.
        high: Largest value.
    """

    column: str
    units: str
    verb: str
    verbs: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Size:
    """Measured property: "is 1.4 km long".

    Attributes:
        column: Heading of a table's column.
        adjective: Adjective of the measure.
        comparative: Comparative of the adjective.
        superlative: Superlative of the adjective.
        unit: Unit that documents use.
        asked_unit: Name of another unit.
        factor: Number of asked units in one unit.
        low: Smallest value.
        high: Largest value.
    """

    column: str
    adjective: str
    comparative: str
    superlative: str
    unit: str
    asked_unit: str
    factor: float
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Subject:
    """Kind of things in a document.

    Attributes:
        role: Heading and participle for the responsible person: ("Head", "led").
        state: Heading and participle for finished things: ("Status", "finished").
        missing: Property that documents do not mention.
    """

    noun: str
    plural: str
    count: Count
    size: Size
    role: tuple[str, str]
    state: tuple[str, str]
    missing: str


LENGTH = ("Length", "long", "longer", "longest", "m", "kilometres", 0.001)
WEIGHT = ("Weight", "heavy", "heavier", "heaviest", "kg", "grams", 1000.0)
HEIGHT = ("Height", "high", "higher", "highest", "m", "centimetres", 100.0)
DEPTH = ("Depth", "deep", "deeper", "deepest", "cm", "metres", 0.01)
MASS = ("Weight", "heavy", "heavier", "heaviest", "t", "kilograms", 1000.0)


def listed(text: str, mark: str | None = None) -> list[str]:
    """Return the parts of a text between marks, or between blanks."""
    return [" ".join(part.split()) for part in text.split(mark)]


SUBJECTS = {
    "calibration": (
        Subject("hall", "halls", Count("Seats", "people", "seat", "seats", 80, 2400), Size(*HEIGHT, 5, 30),
                ("Manager", "managed"), ("State", "renovated"), "architect"),
        Subject("farm", "farms", Count("Cows", "cows", "have", "has", 12, 180), Size(*LENGTH, 300, 4000),
                ("Tenant", "run"), ("State", "inspected"), "phone number"),
        Subject("plan", "plans", Count("Steps", "steps", "have", "has", 3, 40), Size(*DEPTH, 40, 900),
                ("Lead", "led"), ("Status", "finished"), "start date"),
        Subject("ferry", "ferries", Count("Cars", "cars", "carry", "carries", 20, 400), Size(*MASS, 300, 9000),
                ("Captain", "commanded"), ("State", "repaired"), "home port"),
        Subject("depot", "depots", Count("Pallets", "pallets", "hold", "holds", 200, 9000), Size(*HEIGHT, 6, 40),
                ("Keeper", "supervised"), ("State", "insured"), "address"),
        Subject("printer", "printers", Count("Pages", "pages", "print", "prints", 10, 90), Size(*WEIGHT, 6, 120),
                ("Owner", "maintained"), ("Status", "tested"), "serial number"),
    ),
    "report": (
        Subject("school", "schools", Count("Pupils", "pupils", "teach", "teaches", 90, 1900), Size(*HEIGHT, 8, 35),
                ("Head", "directed"), ("State", "painted"), "founder"),
        Subject("orchard", "orchards", Count("Trees", "trees", "contain", "contains", 60, 3000), Size(*LENGTH, 200, 3000),
                ("Gardener", "tended"), ("State", "fenced"), "telephone number"),
        Subject("task", "tasks", Count("Hours", "hours", "need", "needs", 2, 90), Size(*DEPTH, 30, 700),
                ("Assignee", "handled"), ("Status", "closed"), "deadline"),
        Subject("tram", "trams", Count("Passengers", "passengers", "transport", "transports", 60, 420), Size(*MASS, 20, 90),
                ("Driver", "driven"), ("State", "cleaned"), "manufacturer"),
        Subject("cellar", "cellars", Count("Bottles", "bottles", "store", "stores", 300, 9900), Size(*DEPTH, 200, 900),
                ("Steward", "guarded"), ("State", "locked"), "street"),
        Subject("crane", "cranes", Count("Lifts", "containers", "move", "moves", 15, 95), Size(*WEIGHT, 900, 9500),
                ("Operator", "operated"), ("Status", "approved"), "licence number"),
    ),
}  # fmt: skip

PEOPLE = listed(
    """
    Siv Dahl, Per Aune, Ola Lien, Runa Berg, Tove Strand, Arne Vik, Hedda Lund, Jon Moe, Kari Nes, Leif Haug, Marit
    Sol, Nils Rud, Oda Falk, Pia Holm, Rolf Eide, Signe Krag, Tor Brun, Una Sand, Vidar Myhr, Ylva Torp
""",
    ",",
)
NAMES = listed("""
    Aspen Birk Corvo Delma Esker Fjord Garnet Heron Indigo Juniper Kestrel Larch Merlin Nettle Osprey Plover Quartz
    Raven Sorrel Teal Umber Viola Willow Yarrow Zephyr Almond Barley Cobalt Drover Ember Falcon Ginger Harbor Ivory
    Jasper Kelp Linden Maple Nimbus Opal Poppy Quill Rowan Saffron Thistle Ursa Verbena Wren Xenon Yucca Amber Briar
    Cedar Dune Elder Fern Grove Hazel Iris Jade Kite Lotus Moss Nova Onyx Pearl Quince Reed Sage Tansy Ulex Vesper
    Wisp Xylo Yew Zinnia Acorn Brook Clover Daisy Echo Flint Gale Holly Inlet Jay Knoll Lark Mint Nutmeg Otter Pine
    Ruby Slate Topaz Usnea Vale Wold Zest Aster Basil Coral Dahlia Erica Frost Gorse Heath Isle Jewel Koa Lilac
    Myrtle Nacre Oak Petal Robin Shore Tern Umbel Vine Wheat Zircon Alder Bay Crest Drift Eddy Finch Glen Haven Ivy
    Jetty
""")
TOWNS = listed("""
    Arvik Belsund Corran Dalby Elvestad Fossum Granvin Hovden Innset Jelsa Kvam Lauvdal Morvik Narbuvoll Ostby
    Prestad Rindal Sandnor Tresfjord Ulvik Vardal Ytterby Amla Bodvik Celle Drevja Eikem Flatva Grimstad Holt Isane
    Jorpel
""")
