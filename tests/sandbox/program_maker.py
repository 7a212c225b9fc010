"""Random programs for the dataflow tests: mostly well-typed, sometimes wrong, always short and certain to end.

Lists `l0`, `l1` are never mutated inside loops and functions, so iterating over them ends; `l2` and its alias `m0` are,
with a length guard.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from .program_idioms import idiom

STRINGS = ("s0", "s1", "s2")
LISTS = ("l0", "l1", "l2", "m0")
PREAMBLE = (
    's0 = "ann"',
    's1 = "bob"',
    's2 = ""',
    'l0 = ["x", "y"]',
    'l1 = ["u", "v", "w"]',
    "l2 = []",
    "m0 = l2",
    "d0 = {}",
    'g0 = {"x": ["gx"], "y": [], "k": []}',
    'rows = [["r"], ["t"]]',
    "n0 = 2",
)


class Maker:
    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.functions: list[tuple[str, str, str]] = []  # name, parameter kind, result kind
        self.locals: list[str] = []  # strings in scope besides the globals
        self.in_function = False
        self.loops = 0
        self.whiles = 0
        self.collects = self.chance(20)  # a defaultdict, which reading changes

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) < percent

    # -- expressions

    def string(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(25):
            return self.simple_string()
        inner = depth - 1
        makers: list[Callable[[], str]] = [
            *[lambda: f"answer({self.string(inner)})"] * 4,
            *[lambda: f"answer({self.string(inner)}, {self.list(inner)})"] * 2,
            lambda: f'f"<{{{self.bare(depth)}}} {{{self.bare(depth)}}}>"',
            lambda: self.indexed(inner),
            lambda: self.called("s", depth),
            lambda: f"({self.string(inner)} if {self.test(inner)} else {self.string(inner)})",
            lambda: f"({self.string(inner)} {self.pick('or', 'and', '+')} {self.string(inner)})",
            lambda: f"str({self.integer(inner)})",
            lambda: f'"-".join({self.comprehension(depth, brackets=False)})',
            lambda: f"{self.simple_string()}.upper()",
            lambda: f"d0.get({self.simple_string()}, s0)",
            lambda: '(d0 or {"k": s1})["k"]' if self.chance(30) else "s2.strip()",
        ]
        return makers[self.number(0, len(makers) - 1)]()

    def indexed(self, depth: int) -> str:
        if self.chance(20):
            return f"{self.list(depth)}[{self.number(-1, 2)}]"
        return f"({self.list(depth)} + [s0])[0]"

    def bare(self, depth: int) -> str:
        """For inside an f-string: no quotes."""
        text = self.string(depth - 1)
        return "s1" if '"' in text or "'" in text or "{" in text else text

    def simple_string(self) -> str:
        if self.locals and self.chance(50):
            return self.draw(st.sampled_from(self.locals))
        if self.number(0, 299) == 77:
            return "missing"
        return self.pick(*STRINGS, '"k"', '"hop"')

    def list(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(30):
            return self.pick(*LISTS, *LISTS, "[]", 's0.split("n")')
        kind = self.number(0, 8)
        if kind < 2:
            return f"retrieve({self.string(depth - 1)})"
        if kind == 2:
            return f"[{self.string(depth - 1)}, {self.string(depth - 1)}]"
        if kind < 5:
            return self.comprehension(depth)
        if kind == 5:
            return f"sorted({self.list(depth - 1)}{self.pick('', ', key=len', ', key=lambda v: answer(v)')})"
        if kind == 6:
            return f"({self.list(depth - 1)} + {self.list(depth - 1)})"
        if kind == 7:
            return self.called("l", depth)
        return self.pick(f"list(map(answer, {self.list(depth - 1)}))", f"{self.list(depth - 1)}[:2]", "list(d0)")

    def comprehension(self, depth: int, *, brackets: bool = True) -> str:
        name = self.pick("v", "v", "s1")
        source = self.list(depth - 1)
        self.locals.append(name)
        element = self.string(depth - 1)
        condition = f" if {self.test(depth - 1)}" if self.chance(30) else ""
        second = f" for w in {self.pick('l0', 'l1', 'retrieve(v)', '[s0]')}" if self.chance(15) and name == "v" else ""
        self.locals.pop()
        inner = f"{element} for {name} in {source}{second}{condition}"
        return f"[{inner}]" if brackets else inner

    def integer(self, depth: int = 1) -> str:
        if depth <= 0 or self.chance(40):
            return self.pick("n0", "1", "3")
        return self.pick(
            f"len({self.list(depth - 1)})",
            f"len({self.string(depth - 1)})",
            f"({self.integer(depth - 1)} + {self.integer(depth - 1)})",
            f"sum(len(answer(v)) for v in {self.list(depth - 1)})",
            f"sum({self.pick('n0', 'len(v)')} for v in {self.list(depth - 1)})",
            self.pick(
                f"(6 // {self.integer(depth - 1)})",
                f"int({self.string(depth - 1)})",
                f"sum(answer(v) for v in {self.list(depth - 1)})",
            )
            if self.chance(15)
            else "2",
        )

    def test(self, depth: int = 1) -> str:
        kind = self.number(0, 5)
        if kind == 0:
            return f"{self.string(depth - 1)} in {self.list(depth - 1)}"
        if kind == 1:
            return f"{self.integer(depth)} < {self.integer(depth)}"
        if kind == 2:
            return f'"a" in answer({self.string(depth - 1)})'
        if kind == 3 and depth > 0:
            return f"({self.test(depth - 1)} {self.pick('and', 'or')} {self.test(depth - 1)})"
        if kind == 4:
            return f"any(answer(v) > s0 for v in {self.list(depth - 1)})"
        return f"{self.string(depth - 1)} {self.pick('==', '!=', '<')} {self.string(depth - 1)}"

    def called(self, result: str, depth: int) -> str:
        fitting = [f for f in self.functions if f[2] == result]
        if not fitting:
            return self.simple_string() if result == "s" else self.pick(*LISTS)
        name, parameter, _ = self.draw(st.sampled_from(fitting))
        argument = self.string(depth - 1) if parameter == "s" else self.list(depth - 1)
        return f"{name}({argument})"

    # -- statements

    def statement(self, depth: int) -> list[str]:
        if depth > 0 and self.chance(30):
            return self.compound(depth)
        if self.chance(12):
            return idiom(self)
        kind = self.number(0, 15)
        if kind < 5:
            return [f"{self.pick(*STRINGS)} = {self.string(3)}"]
        if kind < 7:
            target = self.pick("l2", "m0") if self.loops or self.in_function else self.pick(*LISTS)
            return [f"{target} = {self.list(3)}"] if not self.loops else self.append()
        if kind < 10:
            return self.mutation()
        if kind == 10:
            return [f"n0 {self.pick('=', '+=')} {self.integer(2)}"]
        if kind == 11:
            return [f"print({self.string(2)}, {self.integer(1)})"]
        if kind == 12:
            return [f"s0, s2 = {self.string(2)}, {self.string(2)}"]
        if kind == 13:
            return [f"{self.pick(*STRINGS)} += {self.string(2)}"]
        return self.rare().split("\n")

    def rare(self) -> str:
        wrong = [
            f"raise ValueError({self.string(1)})",
            f"assert {self.test(1)}, {self.string(1)}",
            f"answer({self.string(1)}).nothing",
            f"first = {self.list(1)}[0]",
            "bad = [{v} for v in [l0]]",
            f"u0, u1 = {self.list(2)}",
            "s1 = answers[0]",
            f"s0 = box[0][{self.number(0, 1)}]",
            "rest = list(lazy)",
            f"found = alias({self.string(1)})",
            "del s1" if not self.in_function else "raise KeyError(s0)",
            "raise SystemError" if self.chance(10) else "n0 = n0 + 1",
        ]
        if self.chance(25):
            return self.draw(st.sampled_from(wrong))
        options = [
            "m0 = l2",
            f"n0: int = {self.integer(1)}",
            f"pairs = [(v, answer(v)) for v in {self.list(1)}]",
            f"seen = {{answer(v) for v in {self.list(1)}}}",
            f"d0 = {{v: answer(v) for v in {self.list(1)}}}",
            f"total = max({self.list(1)}, key=lambda v: answer(v))",
            f"lazy = (answer(v) for v in {self.list(1)})",
            f"box = [l2, {self.list(1)}]",
            f"alias = retrieve\nfound = alias({self.string(1)})",
            f"lazy = (answer(v) for v in {self.list(1)})\nrest = list(lazy)",
            f"answers = [answer(v) for v in {self.list(1)}] + [s0]\ns1 = answers[0]",
            f"answers = [{self.string(1)}, {self.string(1)}]\nu0, u1 = answers\ns0 = answers[-1]",
            f"box = [l2, {self.list(1)}]\nm0 = box[1]" if not self.loops else "pass",
            f"lengths = {{len(v): [v] for v in {self.list(1)}}}",
            f"answers = [answer(v) for v in {self.list(1)}]",
        ]
        if not self.in_function:
            options += [
                f"l2 += {self.list(1)}" if not self.loops else "pass",
                "box[0].append(s0)" if not self.loops else "pass",
            ]
        return self.draw(st.sampled_from(options))

    def append(self) -> list[str]:
        name = self.pick("l2", "m0")
        return [f"if len({name}) < 6:", f"    {name}.append({self.string(2)})"]

    def mutation(self) -> list[str]:
        plain = [
            f"d0[{self.simple_string()}] = {self.string(2)}",
            f"d0[{self.simple_string()}] = d0.get({self.simple_string()}, {self.simple_string()}) + {self.string(1)}",
            f"d0[{self.simple_string()}] += {self.string(1)}" if self.chance(30) else f'd0["n"] = {self.integer(1)}',
        ]
        if self.chance(25):
            return self.deep_mutation()
        if not self.loops and not self.in_function:
            name = self.pick(*LISTS)
            plain += [f"{name}.append({self.string(2)})"] * 3
            plain += [f"{name}.sort()", f"{name}.extend({self.list(1)})", f"{name}[:1] = [{self.string(1)}]"]
            plain += [f"{name}.pop()", f"{name}[0] = {self.string(1)}"] if self.chance(20) else []
        elif self.chance(60):
            return self.append() if self.chance(40) else ["facts.append(" + self.string(2) + ")"]
        return [self.draw(st.sampled_from(plain))]

    def deep_mutation(self) -> list[str]:
        key = self.pick('"x"', '"y"', f"{self.simple_string()}[:1]")
        options = [
            [f"if {key} in g0:", f"    g0[{key}].append({self.string(2)})"],
            [f"g0.setdefault({key}, []).append({self.string(2)})"],
            [f"g0[{key}].append({self.string(2)})"],
            [f"g0[{key}].append(answer({self.simple_string()}))"],
            [f"box = collect[{key}]", f"collect[{key}].append({self.string(2)})"] if self.collects else ["pass"],
            [f"collect[{key}].append({self.string(2)})"] if self.collects else ["pass"],
            [f"g0[{key}] += [{self.string(2)}]"],
            [f"d0[{key}] = d0.get({key}, s0)", f"d0[{key}] += {self.string(1)}"],
            ["for row in rows:", f"    row.append({self.string(2)})"],
            ["for row in rows:", "    row.append(answer(row[0]))"],
            ["for key in g0:", f"    g0[key] = g0[key] + [answer(key)]{self.pick('', ' + rows[0][:1]')}"],
            [f"rows[{self.number(0, 1)}][0] = {self.string(2)}"],
            ["row = rows[0]", f"row[0] = {self.string(2)}"],
            [f"g0['x'] = rows[{self.number(0, 1)}]"] if not self.loops else ["pass"],
        ]
        return self.draw(st.sampled_from(options))

    def body(self, depth: int, low: int = 1, high: int = 4) -> list[str]:
        lines: list[str] = []
        for _ in range(self.number(low, high)):
            lines += self.statement(depth)
        return ["    " + line for line in lines]

    def compound(self, depth: int) -> list[str]:
        kind = self.number(0, 9)
        if kind < 3:
            lines = [f"if {self.test(2)}:", *self.body(depth - 1)]
            return [*lines, "else:", *self.body(depth - 1)] if self.chance(50) else lines
        if kind < 8:
            return self.loop(depth)
        if kind == 8:
            caught = self.pick("ValueError", "Exception", "(TypeError, KeyError)", "")
            lines = [
                "try:",
                *self.body(depth - 1),
                f"except {caught}:" if caught else "except:",
                *self.body(depth - 1, 1, 2),
            ]
            return [*lines, "finally:", *self.body(0, 1, 1)] if self.chance(20) else lines
        self.loops += 1
        self.whiles += 1
        k = f"k{self.whiles}"
        lines = [f"{k} = 0", f"while {k} < {self.number(1, 3)} and {self.test(1)}:", f"    {k} += 1"]
        lines += self.body(depth - 1)
        self.loops -= 1
        return lines

    def loop(self, depth: int) -> list[str]:
        target = self.pick("q", "q", "q", "i, q", "s1")
        source = self.list(2)
        if target == "i, q":
            source = f"enumerate({source})"
        self.loops += 1
        self.locals.append("q")
        body = self.body(depth - 1, 1, 5)
        if self.chance(15):
            body.append(f"    if {self.test(1)}: {self.pick('break', 'continue')}")
        if self.chance(20):
            body += self.body(0, 1, 2)
        self.locals.pop()
        self.loops -= 1
        lines = [f"for {target} in {source}:", *body]
        return [*lines, "else:", *self.body(0, 1, 1)] if self.chance(8) else lines

    def function(self, index: int) -> list[str]:
        parameter, result = self.pick("s", "l"), self.pick("s", "l")
        name = f"f{index}"
        self.in_function = True
        self.locals.append("x" if parameter == "s" else "s0")
        lines = [f"def {name}(x):"]
        if self.chance(15):
            lines.append("    global s2")
        lines += ["    out = []"]
        if self.chance(40):
            lines += self.body(1, 1, 3)
        if self.chance(50):
            lines += [f"    for y in {'x' if parameter == 'l' else self.list(1)}:", "        out.append(answer(y))"]
        if self.chance(10):
            lines += ["    if len(x) > 1:", f"        return {name}(x[1:])"]
        value = self.string(2) if result == "s" else self.pick("out", self.list(2), "x" if parameter == "l" else "out")
        lines.append(f"    return {value}")
        self.locals.pop()
        self.in_function = False
        self.functions.append((name, parameter, result))
        return lines


def in_function(maker: Maker, lines: list[str]) -> list[str]:
    """The lines as the body of a function that is called once, as models like to write it."""
    name = maker.pick("main", "solve")
    parameter, argument = ("s1", '"bob"') if maker.chance(30) else ("", "")
    returned = maker.pick(*["[s0, s1, s2, l0, l1, l2, d0, g0, rows, facts]"] * 3, maker.string(2), "s0, q")
    body = [f"    {line}" for line in (*lines, f"return {returned}")]
    if maker.chance(15):
        body.insert(len(lines), f"    if {maker.test(1)}: {maker.pick('return s0', 'raise KeyError')}")
    call = maker.pick(f"final = {name}({argument})", f"final = {name}({argument})", f"print({name}({argument}))")
    guard = ['if "__main__" == "__main__":', f"    {call}"] if maker.chance(30) else [call]
    return [f"def {name}({parameter}):", *body, *guard]


@st.composite
def programs(draw: DrawFn) -> str:
    maker = Maker(draw)
    preamble = [line for line in PREAMBLE if not maker.chance(2)]
    preamble.append("facts = []")
    if maker.collects:
        preamble += ["from collections import defaultdict", "collect = defaultdict(list)"]
    wrapped = maker.number(0, 9)
    functions: list[str] = []
    if wrapped != 0:
        for index in range(maker.number(0, 2)):
            functions += maker.function(index)
    lines: list[str] = []
    for _ in range(maker.number(1, 9)):
        lines += maker.statement(2)
    if wrapped == 0:
        lines = in_function(maker, preamble + lines)
    elif wrapped == 1:  # the same names outside, which the functions see
        lines = preamble + functions + in_function(maker, preamble + lines)
    elif wrapped == 2:  # and those inside may be unbound
        lines = preamble + functions + in_function(maker, lines)
    else:
        lines = preamble + functions + lines
    return "\n".join(lines) + "\n"
