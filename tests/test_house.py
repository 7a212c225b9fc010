"""The rules of the house, counted: how code is worded and cut. `tests/test_imports.py` has the rules on imports.

Each ceiling is what is left to mend. It may only be lowered; a rule whose ceiling is 0 is kept.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = ("pyrag", "pyrag_helpers", "sandbox/pyrag_sandbox", "rl/pyrag_rl", "recipes")
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
MAX_WORDS = 10  # of a test's name
MAX_LINES = 400  # of a module
MAX_MODULES = 15  # of a folder
RELATIVE = re.compile(r"(What|Which|Whether|How|Where|Who|Whose|Whom|When|Why|That|Whatever|Whoever)\b")
BOUND = re.compile(
    r"^ *(_?(?:MOST|LEAST|LONGEST|SHORTEST|FEWEST|FEW|MANY|ENOUGH)(?:_[A-Z0-9_]+)?)(?:: .*)? = ", re.MULTILINE
)
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)

# Packages and modules whose docstrings and names have the form of `writing.md`. The list may only grow.
FINISHED = (
    "benchmarks/",
    "pyrag/_io/",
    "pyrag/agents/",
    "pyrag/api.py",
    "pyrag/cli/",
    "pyrag/embedded/",
    "pyrag/episode/",
    "pyrag/errors.py",
    "pyrag/evaluation/",
    "pyrag/evolve/",
    "pyrag/integrations/",
    "pyrag/llm/",
    "pyrag/methods/baselines/",
    "pyrag/methods/hera/",
    "pyrag/methods/opera/",
    "pyrag/methods/program_result.py",
    "pyrag/methods/program_text.py",
    "pyrag/methods/pyrag/",
    "pyrag/methods/registry.py",
    "pyrag/methods/repair.py",
    "pyrag/methods/search_agent.py",
    "pyrag/methods/step_recorder.py",
    "pyrag/networks/",
    "pyrag/reproduce/",
    "pyrag/retrieval/",
    "pyrag/runtime/",
    "pyrag/server/",
    "pyrag/settings/",
    "pyrag/testing/",
    "pyrag/tools/",
    "pyrag/trace/",
    "pyrag_helpers/",
    "recipes/",
    "rl/pyrag_rl/__init__.py",
    "rl/pyrag_rl/config.py",
    "rl/pyrag_rl/cpu_smoke/",
    "rl/pyrag_rl/curriculum/",
    "rl/pyrag_rl/data/",
    "rl/pyrag_rl/folder.py",
    "rl/pyrag_rl/mapgrpo/",
    "rl/pyrag_rl/packed/",
    "rl/pyrag_rl/prompting.py",
    "rl/pyrag_rl/report.py",
    "rl/pyrag_rl/rewards/",
    "rl/pyrag_rl/start.py",
    "rl/pyrag_rl/verifiers.py",
    "rl/pyrag_rl/verl/",
    "sandbox/pyrag_sandbox/",
)
# Verbs that summaries of functions open with. Add a verb in the imperative; never a noun, "Returns" or "True".
VERBS = frozenset(
    """
    Accept Add Admit Answer Append Apply Ask Assemble Await Begin Bind Blame Block Build Call Cancel Change Check Choose
    Claim Clear Close Combine Compile Complete Conclude Connect Convert Copy Correct Count Create Cut Decide Decode
    Decompose Delete Describe Detect Discard Do Download Draw Drop Embed Encode End Escape Evaluate Exclude Execute
    Export Extend Find Forget Format Free Generate Give Go Group Handle Have Hold Ignore Import Join Judge Keep Kill
    Learn Leave Let Lift Limit Link List Load Lock Log Look Lower Make Map Mark Measure Merge Move Name Normalise Note
    Number Observe Open Pair Parse Pass Perform Place Plot Prepare Print Process Put Raise Read Rebuild Record Reduce
    Refuse Register Release Remember Remove Repeat Rephrase Replace Report Reproduce Request Reserve Resume Return
    Review Rewrite Run Sample Schedule Score Search Select Send Serve Set Shorten Show Shut Skip Sort Split Start Stop
    Store Suspend Switch Sync Take Teach Tell Train Transfer Transpose Treat Truncate Try Turn Undo Update Use Visit
    Wait Warn Wrap Write Yield
    """.split()  # noqa: SIM905
)
NOUN_OR_VERB = frozenset([
    "Answers", "Calls", "Checks", "Counts", "Formats", "Names", "Numbers", "Places", "Plots", "Records", "Reports",
    "Requests", "Runs", "Scores", "Searches", "Starts", "Marks", "Turns", "Limits", "Changes", "Links",
    "Reviews", "Samples", "Measures", "Notes", "Lists", "Blocks", "Builds", "Claims", "Exports", "Pass", "Process",
    "Processes",
])  # fmt: skip
BANNED_NAMES = frozenset(["one", "found", "said", "told", "given", "taken", "kept", "most", "least"])
# Names that other programs see: fields of the trace, of events and of results.
FIELD_OWNERS = ("pyrag/trace/model.py", "pyrag/trace/events.py", "pyrag/runtime/answering.py", "pyrag/evaluation/")
PUBLIC_FIELDS = frozenset(["found", "said"])  # `Searched.found`, `HopShare.found`, `Trace.said`
IS_NO = re.compile(r"(?<![Tt]here )\b(?:is|are) no(?:ne of)?\b(?! (?:longer|more)\b)")  # "is no number"
TURNS = re.compile(
    r"\b(?:that of|those of|anew|in vain|where it has none|where there (?:is|are)|(?<!there )(?:is|are) none"
    r"|as above|before it came to)\b"
)
ENTRY = re.compile(r"^ {4}(\**\w+(?:, \**\w+)*): ((?:.|\n {8})+)", re.MULTILINE)

RELATIVE_DOCSTRINGS = 0
WITHOUT_ARGS = 2  # commands that are registered without a decorator: their options carry their help
BOUNDS = 0
LONG_MODULES = 0
TWICE = 0
LONG_NAMES = 0
LARGE_FOLDERS: dict[str, int] = {}


class Definition(NamedTuple):
    """A module, class or function; `name` is empty for a module."""

    path: str
    name: str
    docstring: str
    arguments: int = 0
    public: bool = False


@cache
def texts(*folders: str) -> dict[str, str]:
    """Modules below these folders, by path."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


@cache
def definitions() -> tuple[Definition, ...]:
    hidden = re.compile(r"/_(?!_init__|_main__|io/)")
    found: list[Definition] = []
    for path, text in texts(*PACKAGES, "prompts").items():
        tree = ast.parse(text)
        found.append(Definition(path, "", ast.get_docstring(tree) or ""))
        found += below(path, tree, public=not hidden.search(path))
    return tuple(found)


def below(path: str, node: ast.AST, *, public: bool, depth: int = 0) -> Iterator[Definition]:
    """Classes and functions among the statements of a node; functions inside of functions count as private."""
    for child in statements(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            given = child.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = sum(name not in ("self", "cls") for name in names) + bool(given.vararg) + bool(given.kwarg)
            overloaded = any(isinstance(one, ast.Name) and one.id == "overload" for one in child.decorator_list)
            shown = public and depth < 2 and not child.name.startswith("_") and not overloaded and not is_command(child)
            yield Definition(path, child.name, ast.get_docstring(child) or "", count, shown)
            yield from below(path, child, public=False, depth=2)
        elif isinstance(child, ast.ClassDef):
            yield Definition(path, child.name, ast.get_docstring(child) or "")
            yield from below(path, child, public=public and not child.name.startswith("_"), depth=depth + 1)
        else:
            yield from below(path, child, public=public, depth=depth)


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return True for commands of the command line: their options carry their help."""
    calls = (one.func for one in function.decorator_list if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in ("callback", "command") for one in calls)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "handlers", "finalbody"):
        if isinstance(inner := getattr(node, name, None), list):
            yield from inner


def listed(found: list[str]) -> str:
    return f"{len(found)}: " + "; ".join(found[:20])


def test_docstrings_open_with_a_verb_or_noun() -> None:
    found = [f"{one.path}: {one.docstring.splitlines()[0]}" for one in definitions() if RELATIVE.match(one.docstring)]
    assert len(found) <= RELATIVE_DOCSTRINGS, listed(found)


def test_public_functions_document_their_arguments() -> None:
    found = [
        f"{one.path}: {one.name}"
        for one in definitions()
        if one.public and one.arguments > 1 and "Args:" not in one.docstring
    ]
    assert len(found) <= WITHOUT_ARGS, listed(found)


@cache
def finished() -> tuple[tuple[str, ast.AST], ...]:
    """Return path and node of all nodes in finished packages."""
    trees = (
        (path, ast.parse(text)) for path, text in texts(*PACKAGES, "benchmarks").items() if path.startswith(FINISHED)
    )
    return tuple((path, node) for path, tree in trees for node in ast.walk(tree))


@cache
def documented(*kinds: type) -> tuple[tuple[str, ast.AST, str], ...]:
    """Return place, node and docstring of the finished packages' definitions of these kinds."""
    nodes = [(path, node) for path, node in finished() if isinstance(node, kinds)]
    return tuple(
        (f"{path}: {getattr(node, 'name', '')}", node, docstring)
        for path, node in nodes
        if (docstring := ast.get_docstring(node))  # type: ignore[arg-type]
    )


def is_property(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(isinstance(item, ast.Name) and item.id in ("property", "cached_property") for item in decorators)


def entries(docstring: str) -> list[str]:
    """Return the texts of the entries under "Args:"."""
    _, _, block = docstring.partition("Args:\n")
    return [match[2].strip() for match in ENTRY.finditer(re.split(r"\n\s*\n", block)[0])]


def opens_with_verb(docstring: str) -> bool:
    return docstring.split()[0].rstrip(".,:") in VERBS


def is_nominal(docstring: str) -> bool:
    """Return True unless a summary opens with a verb in the third person, as in "Reads the file"."""
    word = docstring.split()[0].strip("`.,:")
    third = word.removesuffix("es") in VERBS or word.removesuffix("s") in VERBS
    return not (word.endswith("s") and third) or word in NOUN_OR_VERB


def test_summaries_of_functions_are_imperative() -> None:
    functions = documented(ast.FunctionDef, ast.AsyncFunctionDef)
    assert [place for place, node, text in functions if not is_property(node) and not opens_with_verb(text)] == []


def test_summaries_of_classes_and_modules_are_nominal() -> None:
    assert [place for place, _, text in documented(ast.ClassDef, ast.Module) if not is_nominal(text)] == []


def test_argument_entries_are_sentences() -> None:
    functions = documented(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    pairs = [(place, entry) for place, _, text in functions for entry in entries(text)]
    assert len(pairs) > 800
    assert [pair for pair in pairs if not re.match(r"[A-Z`\"0-9]", pair[1]) or not pair[1].endswith(".")] == []


def test_docstrings_avoid_translated_turns() -> None:
    all_of_them = documented(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    assert [f"{place}: {match[0]}" for place, _, text in all_of_them if (match := TURNS.search(text))] == []


def name_of_data(node: ast.AST) -> str:
    """Return the name of a variable, argument or attribute; empty for any other node."""
    match node:
        case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)):
            return name
        case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)):
            return name
    return ""


def name_of_definition(node: ast.AST) -> str:
    """Return the name of a function or class; empty for any other node."""
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""


def is_banned(name: str) -> bool:
    """Return True for a banned name, also in capitals or with an underscore in front."""
    return name.strip("_").lower() in BANNED_NAMES


def is_public(path: str, node: ast.AST) -> bool:
    """Return True for names that other programs see."""
    name = name_of_data(node)
    return name in PUBLIC_FIELDS and (isinstance(node, ast.Attribute) or path.startswith(FIELD_OWNERS))


def test_names_of_data_say_what_they_hold() -> None:
    banned = [(path, node) for path, node in finished() if is_banned(name_of_data(node))]
    assert [f"{path}: {name_of_data(node)}" for path, node in banned if not is_public(path, node)] == []


def test_names_of_functions_say_what_they_do() -> None:
    banned = [(path, name) for path, node in finished() if is_banned(name := name_of_definition(node))]
    assert [place for place in banned if place[1] not in PUBLIC_FIELDS or not place[0].startswith(FIELD_OWNERS)] == []


def raised(node: ast.AST) -> Iterator[str]:
    """Yield the texts in the arguments of an error that is raised."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for part in (inner for argument in node.exc.args for inner in ast.walk(argument)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def test_messages_say_is_not_a() -> None:
    texts_raised = [(path, text) for path, node in finished() for text in raised(node)]
    assert len(texts_raised) > 1000
    assert [f"{path}: {text}" for path, text in texts_raised if IS_NO.search(text)] == []


def test_the_counting_of_words_finds_its_faults() -> None:
    text = "Return it.\n\nArgs:\n    a: A text.\n    b: of those\n        below\n    *c: Names\n\nRaises:\n    E: no"
    assert entries(text) == ["A text.", "of those\n        below", "Names"]
    assert opens_with_verb(text)
    assert not opens_with_verb("Returns it.")
    assert not opens_with_verb("The passages.")
    assert is_nominal("Client for servers.")
    assert is_nominal("Answers of a model.")
    assert not is_nominal("Reads a file.")
    assert TURNS.search("the limit is that of the index")
    assert TURNS.search("a value that is none")
    assert not TURNS.search("empty if there is none")
    assert is_banned("_FOUND")
    assert not is_banned("founder")
    (error, *_) = ast.parse('raise DataError(f"{name} is no number: pass one")').body
    assert [text for text in raised(error) if IS_NO.search(text)] == [" is no number: pass one"]
    assert not IS_NO.search("there is no file here, and the run is no longer open")
    assert {name_of_data(node) for node in ast.walk(ast.parse("found = [one for one in x]"))} >= {"found", "one"}


def test_bounds_are_called_max_and_min() -> None:
    found = [f"{path}: {one}" for path, text in texts(*PACKAGES, "benchmarks").items() for one in BOUND.findall(text)]
    assert len(found) <= BOUNDS, listed(found)


def test_modules_stay_below_400_lines() -> None:
    found = [path for path, text in texts(*PACKAGES).items() if text.count("\n") > MAX_LINES]
    assert len(found) <= LONG_MODULES, listed(found)


def test_folders_hold_at_most_15_modules() -> None:
    held: dict[str, int] = defaultdict(int)
    for path in map(Path, texts(*PACKAGES)):
        held[str(path.parent)] += path.name != "__init__.py"
    assert {one: count for one, count in held.items() if count > LARGE_FOLDERS.get(one, MAX_MODULES)} == {}


def test_class_names_are_unique_in_a_package() -> None:
    found = []
    for package in PACKAGES:
        places: dict[str, list[str]] = defaultdict(list)
        for path, text in texts(package).items():
            for name in CLASS.findall(text):
                places[name].append(path)
        found += [f"{name} in {paths}" for name, paths in sorted(places.items()) if len(set(paths)) > 1]
    assert len(found) <= TWICE, listed(found)


def test_names_of_tests_have_at_most_ten_words() -> None:
    named = [f"{path}: {name}" for path, text in texts("tests").items() for name in TEST.findall(text)]
    assert len(named) > 1000
    found = [one for one in named if len(one.split(": ")[1].split("_")) - 1 > MAX_WORDS]
    assert len(found) <= LONG_NAMES, listed(found)


def test_only_tests_in_their_own_folder_read_shared() -> None:
    beside = re.compile(r"""parents\[3\]|["']\.\./shared""")
    own = {path: text for path, text in texts("tests").items() if path.startswith("tests/shared/")}
    found = [path for path, text in texts("tests").items() if beside.search(text)]
    assert found
    assert [path for path in found if path not in own] == []
    assert all("pytest.mark.shared" in text for text in own.values())


def test_the_counting_finds_what_it_is_for() -> None:
    text = 'class A:\n    def f(self, a, *b):\n        """What it is."""\n        def g(x, y): ...\ndef _h(a, b): ...\n'
    found = [one for one in below("a.py", ast.parse(text), public=True) if one.name != "A"]
    assert [one[1:] for one in found] == [("f", "What it is.", 2, True), ("g", "", 2, False), ("_h", "", 2, False)]
    assert RELATIVE.match(found[0].docstring)
    assert CLASS.findall(text) == ["A"]
    assert BOUND.findall("_MOST_SAID = 1\nMAX_SAID = 1\n    LEAST: int = 2\n") == ["_MOST_SAID", "LEAST"]
    assert TEST.findall("async def test_a_b() -> None:") == ["test_a_b"]
