"""Random programs that retrieve and call a tool with effects, by every route that text can take to a call."""

from __future__ import annotations

from random import Random

INPUTS = {"flag": True, "items": ["ant", "bee"], "label": "cat", "number": 2}
HELPERS = """\
def same(value):
    return value
def look(query):
    return answer(query, retrieve(query))
def buy(value):
    order(value)
    return value
def buy_if(test):
    if test:
        order("dog")
def guard(value):
    if "yes" in value:
        raise ValueError("no")
def keep(box, value):
    box.append(value)
def lazily(values):
    for value in values:
        yield value
"""
DEPENDENT = (
    "{t}", 'f"{{{t}}}"', "[{t}][0]", '{{"k": {t}}}["k"]', "same({t})", "str({t})", "{t}.upper()", "(lambda: {t})()",
    "max([{t}])", '"".join([{t}])', "next(iter([{t}]))", "[value for value in [{t}]][0]", "list(lazily([{t}]))[0]",
    '{t} or "egg"', "({t}, 1)[0]", "(held := {t})", '{t}[:3]', "same(value={t})", "sorted([{t}])[-1]",
)  # fmt: skip
TESTS = (
    '"yes" in {t}', '{t} == "yes"', "len({t}) > 4", "is_known({t})", "{t}", "not {t}", '{t} < "m"', "{t} is None",
    '{t}.startswith("y")', "any(letter == 'y' for letter in {t})", '{t} in ("yes", "maybe")', "isinstance({t}, int)",
)  # fmt: skip
FREE = ('"fox"', "label", "items[0]", 'f"{label}!"', "str(number)", "same(label)", "items[number - 1].upper()")
CALLS = ("order({v})", "order(item={v})", "buy({v})", "order(*[{v}])", 'order(**{{"item": {v}}})', "order(str({v}))")
OTHER_CALLS = ("run = order\nrun({v})", "list(map(order, [{v}]))", "(lambda value: order(value))({v})",
               "[order(value) for value in [{v}]]", "list(order(value) for value in [{v}])", "sorted([{v}], key=order)",
               "class Later:\n    def go(self, value):\n        order(value)\nLater().go({v})",
               "def inner():\n    def deep():\n        order({v})\n    return deep\ninner()()")  # fmt: skip
CARRIED = (
    "box = [{t}]", "box = []\nbox.append({t})", "box = []\nalias = box\nalias += [{t}]", "box = {{}}\nbox['k'] = {t}",
    "box = []\nkeep(box, {t})", "box = [0]\nbox[0] = {t}", "box = set()\nbox.add({t})", "print({t})",
    "left, right = {t}, label", "total = ''\nfor letter in {t}:\n    total = letter", "rest = (same({t}), 1)",
)  # fmt: skip
MAYBE_FAILS = (
    "int({t})", "{t}[40]", "guard({t})", "assert 'yes' in {t}", "1 // (len({t}) - 3)", '{{"yes": 1}}[{t}]',
    'number = answer(f"Who is {{{t}}}?", retrieve("who"))', "if {c}:\n    raise KeyError({t})",
)  # fmt: skip
BRANCHES = (
    "if {c}:\n{b}", "if {c}:\n    pass\nelse:\n{b}", "while {c}:\n{b}\n    break", "{c} and order('gnu')",
    "{c} or order('hen')", "order('ibis') if {c} else None", "for _ in range(2):\n    if {c}:\n        break\n{b}",
    "for doc in docs:\n{b}", "[order('jay') for _ in range(1) if {c}]", "buy_if({c})",
    "for item in items:\n{b}\n    if {c}:\n        continue", "def early():\n    if {c}:\n        return\n{b}\nearly()",
    "match {t}:\n    case 'yes':\n        order('kid')\n    case _:\n        pass",
    "try:\n    int({t})\nexcept Exception:\n{b}", "try:\n    {m}\n{b}\nexcept Exception:\n    pass",
    "try:\n    {m}\nexcept Exception:\n    pass\nelse:\n{b}", "try:\n    {m}\nfinally:\n{b}",
    "chosen = {{True: buy, False: same}}[bool({c})]\nchosen('lark')", "pick = order if {c} else same\npick('mole')",
    "while not ({c}) and number > 0:\n    number -= 1\norder(str(number))",
)  # fmt: skip
READS = (
    'rows = each(docs, "q")', 'rows = each(docs, "q", returns="bool")', 'rows = each(docs[:1], "q")',
    'rows = each(items=docs + docs, question="q")', "rows = each([], 'q')", 'rows = each(items, "{{item}}?")',
    'facts = answer("q", docs + retrieve("r"))', 'facts = answer("q", [docs, retrieve("r")])',
)  # fmt: skip
LISTS = (
    'rows = each(documents(), "q")', 'rows = each(items=docs + documents(), question="q")', "print(len(documents()))",
    'papers = documents()\nrows = each(papers[:2], "q")',
)  # fmt: skip
MAYBE_FAILING_READS = (
    'rows = each(documents(), "q", returns="number")', 'rows = each(docs, "q", "number")',
    'rows = each(documents(), "{{title}}?")', 'rows = each(docs, f"{{first}}?")', 'facts = answer("q", documents())',
    'rows = each((docs + [docs])[:1], "q")', 'rows = each([docs][:1], "q")', 'rows = each(docs[0], "q")',
    'box = []\nbox.append("a")\nfacts = answer("q", (docs + box)[:1])',
    'rows = each([row["value"] for row in docs], "q")',
    'rows = each(documents() * 2, "q")\nassert len(rows) < 3', 'rows = each(docs, "q")\nassert rows',
    'for row in each(docs, "q"):\n    order("owl")', 'rows = each(docs, "q")\nif rows[0]["known"]:\n    order("owl")',
    'rows = each(docs, "q")\norder(str(len(rows)))', 'rows = each(each(docs, "q"), "{{value}}?")',
    'try:\n    rows = each(docs, "q")\n    order("owl")\nexcept Exception:\n    pass',
)  # fmt: skip
SOURCES = ('look("q")', 'answer("q", docs)', "docs[0].text", 'docs[0]["title"]', 'retrieve("r")[0].text')


class Maker:
    """Maker of programs from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def dependent_program(self) -> str:
        """A program all of whose calls with effects depend on passages."""
        lines = ['docs = retrieve("q")', f"first = {self._pick(SOURCES)}"]
        lines += self._some(CARRIED, 2)
        kind = self.random.random()
        if kind < 0.4:
            lines += [self._filled(self._pick((*CALLS, *OTHER_CALLS)), self._value("first"))]
        elif kind < 0.6:
            lines += [self._filled(self._pick(MAYBE_FAILING_READS)), 'order("fox")']
        else:
            lines += [self._filled(self._pick(BRANCHES))]
        return self._whole(lines)

    def any_program(self) -> str:
        """A program that mixes calls with effects of all kinds."""
        lines = [] if self.random.random() < 0.5 else [self._filled(self._pick(CALLS), self._pick(FREE))]
        lines += ['docs = retrieve("q")', f"first = {self._pick(SOURCES)}"]
        for _ in range(self.random.randrange(1, 6)):
            kind = self.random.random()
            if kind < 0.35:
                lines.append(self._filled(self._pick((*CALLS, *OTHER_CALLS)), self._pick(FREE)))
            elif kind < 0.5:
                lines.append(self._filled(self._pick(CALLS), self._value("first")))
            elif kind < 0.75:
                lines.append(self._filled(self._pick(BRANCHES)))
            elif kind < 0.8:
                lines.append(self._filled(self._pick(MAYBE_FAILS)))
            elif kind < 0.9:
                lines.append(self._filled(self._pick((*READS, *LISTS, *MAYBE_FAILING_READS))))
            else:
                lines += self._some(CARRIED, 1)
        return self._whole(lines)

    def free_program(self) -> tuple[str, list[str]]:
        """A plain program whose calls with effects depend on no passage, and the items it orders."""
        expected: list[str] = []
        lines = ['docs = retrieve("q")']
        for number in range(self.random.randrange(1, 4)):
            lines.append(self.random.choice((
                f'fact{number} = answer("q{number}", docs)', f'more{number} = retrieve(f"{{label}} {number}")',
                f'fact{number} = look("q{number}")', f'text{number} = f"so: {{docs}}"', "print(docs)",
                *map(self._filled, READS),
            )))  # fmt: skip
            code, items = self.random.choice((
                ('order("fox")', ["fox"]), ("order(label)", ["cat"]), ("buy(items[0])", ["ant"]),
                ("if flag:\n    order(label)", ["cat"]), ("for item in items:\n    order(item)", ["ant", "bee"]),
                ("if number > 3:\n    order('x')\nelse:\n    order('y')", ["y"]), ("order(f'{label}!')", ["cat!"]),
                ("[order(item) for item in items if item != 'ant']", ["bee"]),
                ("try:\n    size = int(label)\nexcept ValueError:\n    order('odd')", ["odd"]),
                ("round = 0\nwhile round < number:\n    round += 1\n    order(str(round))", ["1", "2"]),
            ))  # fmt: skip
            lines.append(code)
            expected += items
        return self._whole(lines), expected

    def _whole(self, lines: list[str]) -> str:
        return HELPERS + "\n".join(lines) + "\nfinal_answer = 'done'\n"

    def _pick(self, forms: tuple[str, ...]) -> str:
        return self.random.choice(forms)

    def _some(self, forms: tuple[str, ...], limit: int) -> list[str]:
        return [self._filled(self._pick(forms)) for _ in range(self.random.randrange(limit + 1))]

    def _value(self, name: str) -> str:
        """An expression over a name that depends on it."""
        value = name
        for _ in range(self.random.randrange(1, 3)):
            value = self._pick(DEPENDENT).format(t=f"{value}" if value.isidentifier() else "same(first)")
        return value

    def _filled(self, form: str, value: str = "") -> str:
        """A form with a value, a condition, a body and something that may fail."""
        body = "\n".join(f"    {line}" for line in self._pick(CALLS).format(v=self._pick(FREE)).splitlines())
        fails = self._pick(MAYBE_FAILS[:3]).format(t="first")
        return form.format(t="first", v=value or "first", c=self._pick(TESTS).format(t="first"), b=body, m=fails)
