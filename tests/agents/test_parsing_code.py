"""Programs found in replies, with their quotes and their syntax errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyrag.agents.parsing.programs import MAX_SOURCE, parse_program, repaired_quotes, syntax_error
from pyrag.errors import BadOutputError

CODE = 'docs = retrieve("Who?")\nfinal_answer = answer("Who?", docs)'


@pytest.mark.parametrize(
    "reply",
    [
        CODE,
        f"```python\n{CODE}\n```",
        f"```py\n{CODE}\n",
        f"~~~\n{CODE}\n~~~",
        f"````python\n{CODE}\n````",
        f"Plan: ```python\r\n{CODE}\r\n```\nIt retrieves first.".replace("\r\n", "\r\n"),
        f"  ```python\n    {CODE.replace(chr(10), chr(10) + '    ')}\n  ```",
        f"<think>```python\nx = retrieve(1)\n```</think>\n```python\n{CODE}\n```",
        f"I think, so ```python\ndraft = retrieve('x')\n```</think>```python\n{CODE}\n```",
        f'```json\n["Who?"]\n```\n```python\n{CODE}\n```',
        f"```python\n{CODE}\n```\nRun it so:\n```bash\npython x.py\n```",
        f"```python\nimport math\n```\n```python\n{CODE}\n```\n```python\nprint(final_answer)\n```",
        f"```python\ndocs = retrieve('draft')\n```\nBetter:\n```python\n{CODE}\n```",
        f"Here is the program:\n\n{CODE}",
        f"Here is the program:\n\n{CODE}\n\nThis program looks for the person first.",
        f"<think>unclosed\n```python\n{CODE}\n```",
    ],
)
def test_found(reply: str) -> None:
    assert parse_program(reply) == CODE


PROMPTS = "\n".join(f">>> {line}" for line in CODE.splitlines())


@pytest.mark.parametrize(
    "reply",
    [
        f"<code>\n{CODE}\n</code>",
        f"<tool_code>\n{CODE}\n</tool_code>",
        f"<pre><code>\n{CODE}\n</code></pre>",
        f"<|python_tag|>{CODE}",
        f"[PYTHON]\n{CODE}\n[/PYTHON]",
        f"<answer>\n{CODE}\n</answer>",
        f"<plan>\n```python\n{CODE}\n```\n</plan>",
        f"'''python\n{CODE}\n'''",
        f'```python title="plan.py"\n{CODE}\n```',
        f"```{{python}}\n{CODE}\n```",
        f"```python {CODE}\n```",
        f"python\n{CODE}",
        f"\ufeff{CODE}",
        CODE.replace(" = ", "\u00a0=\u00a0"),
        CODE.replace('"', "&quot;"),
        PROMPTS,
        f"```python\n{PROMPTS}\n```",
        json.dumps({"program": CODE}),
        json.dumps({"rationale": "two hops", "code": CODE}),
        json.dumps({"tool": "python", "arguments": {"code": CODE}}),
        json.dumps({"code": CODE.splitlines()}),
        f"```json\n{json.dumps({'python': CODE})}\n```",
    ],
)
def test_found_in_other_wrappings(reply: str) -> None:
    assert parse_program(reply).strip() == CODE


@pytest.mark.parametrize(
    "reply", ["", "  ", "I cannot do that.", "<think>only thoughts", "```python\n\n```", "```\n```"]
)
def test_not_found(reply: str) -> None:
    with pytest.raises(BadOutputError, match="no program"):
        parse_program(reply)


def test_too_long() -> None:
    with pytest.raises(BadOutputError, match="longer than"):
        parse_program(f"```python\nx = {'1' * MAX_SOURCE}\n```")


def test_broken_code_is_kept_for_the_repair() -> None:
    broken = 'docs = retrieve("Who?"\nfinal_answer = answer("Who?", docs)'
    assert parse_program(f"```python\n{broken}\n```") == broken
    assert parse_program(f"Here:\n\n{broken}") == broken
    error = syntax_error(broken)
    assert error is not None
    assert error.startswith("SyntaxError: '(' was never closed (line 1)\n    docs = retrieve(")
    assert error.splitlines()[2].index("^") == error.splitlines()[1].index("(")


@pytest.mark.parametrize("text", ["`" * 3_000_000, "~" * 3_000_000, "`" * 2_000_000 + "x"])
def test_a_reply_of_one_character_is_no_program(text: str) -> None:
    """It would take an hour if the time grew with the square of the length."""
    with pytest.raises(BadOutputError):
        parse_program(text)


@pytest.mark.parametrize(
    "source", ["return 1", "x = = 1", "a\0b", "(" * 500, "-" * 60_000 + "1", "x" + ".a" * 30_000, "'\ud800'"]
)
def test_syntax_errors_are_named(source: str) -> None:
    assert (syntax_error(source) or "").startswith("SyntaxError")


def test_warnings_are_no_errors() -> None:
    assert syntax_error("x = '\\d'\nassert (1, 'a')") is None


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("x = “a”", 'x = "a"'),
        ("x = f“When was {y} born?”", 'x = f"When was {y} born?"'),
        ("x = retrieve(‘It’s here’)", "x = retrieve('It\\'s here')".replace("\\'", "’")),
        ('x = [“a "b" c”, “d”]', 'x = ["a \\"b\\" c", "d"]'),
        ('x = “a” + "he said “b”"  # “c”', 'x = "a" + "he said “b”"  # “c”'),
        ('x = "“a”"', 'x = "“a”"'),
        ("x = '‘Unknown’ “Pleasures”'", "x = '‘Unknown’ “Pleasures”'"),
        ("x = “a", "x = “a"),
        ("x = “a” +", "x = “a” +"),
    ],
)
def test_typographic_quotes(source: str, plain: str) -> None:
    assert repaired_quotes(source) == plain


@pytest.mark.parametrize(
    ("source", "mended"),
    [
        ('q1 = "Who wrote "Lulu"?"', 'q1 = "Who wrote \\"Lulu\\"?"'),
        ('q1 = "Who wrote \\"Lulu"?"', 'q1 = "Who wrote \\"Lulu\\"?"'),
        ('q1 = "Who wrote "“Lulu”"?"', 'q1 = "Who wrote \\"“Lulu”\\"?"'),
        ('try:\n    q2 = f"When was "{a1}" out?"\nfinally:\n    x = 1',
         'try:\n    q2 = f"When was \\"{a1}\\" out?"\nfinally:\n    x = 1'),
        ('x = "a" + "b"\ny = "c"d"', 'x = "a" + "b"\ny = "c\\"d"'),
        ('x = "a"b" +', 'x = "a"b" +'),
        ('x = "a"\ny = (', 'x = "a"\ny = ('),
    ],
)  # fmt: skip
def test_quotes_within_the_one_literal_of_a_line_are_escaped(source: str, mended: str) -> None:
    assert repaired_quotes(source) == mended


def compiles(source: str) -> bool:
    try:
        compile(source, "<program>", "exec")
    except SyntaxError:
        return False
    return True


@given(
    st.text(alphabet=st.characters(blacklist_characters="\r\n\\{}\0", blacklist_categories=["Cs", "Cc", "Zl", "Zp"]))
)
def test_any_text_between_quotes_is_read_whole(text: str) -> None:
    source, scope = f'q1 = "Who wrote "{text} "x" Lulu"?"', dict[str, str]()
    assume(not compiles(source))  # as with "#": what compiles stays as it is
    exec(repaired_quotes(source), scope)
    assert scope["q1"] == f'Who wrote "{text} "x" Lulu"?'


@given(st.text())
def test_compiling_programs_stay_as_they_are(text: str) -> None:
    source = f"x = {text!r}\ny = '“' + \"’\""
    assert repaired_quotes(source) == source


@given(st.text())
@settings(max_examples=300)
def test_literals_survive_the_repair_of_others(text: str) -> None:
    scope: dict[str, str] = {}
    source = repaired_quotes(f"x = {text!r}\ny = “a”")
    exec(source, scope)
    assert (scope["x"], scope["y"]) == (text, "a")


@given(st.text(alphabet=st.sampled_from("`~pyton\n =()\"'“”‘’#retivanswfl_<>/hk")))
@settings(max_examples=300)
def test_never_raises_anything_else(text: str) -> None:
    try:
        source = parse_program(text)
    except BadOutputError:
        return
    assert source.strip()
    syntax_error(source)


@pytest.mark.parametrize("piece", ["\n", " ", "~", "`", "\n ", "x ="])
def test_a_reply_of_one_character_is_read_at_once(piece: str) -> None:
    with pytest.raises(BadOutputError):
        parse_program(piece * 20_000)
