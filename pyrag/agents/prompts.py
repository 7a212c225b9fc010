"""Prompt templates, read from `pyrag_prompts` or a user's folder.

A template is a text file with placeholders `{{name}}`. Single braces, `$` and `%` are plain text, and inserted values
are never expanded again, so braces in a question or a passage stay as they are. `{{contract}}`, `{{helpers}}` and
`{{example}}` stand for the files `plan.contract.txt`, `plan.helpers.txt` and `plan.example.txt`, so that shared text
has a single source.

The subfolder `methods` holds the prompts of single methods: `NAME.user.txt`, and `NAME.system.txt` if there is a system
message. They are read when first needed, so a new method can bring its own files, and a folder for one method needs
only that method's files. Their placeholders must be exactly the ones that the method fills. `{{guidance}}` in a system
message stands for what its agent has learned: the operational rules in `NAME.rules.txt` and the behavioural principles
in `NAME.principles.txt`, one per line, if these files exist (HERA evolves them, one folder at a time).

A user's folder replaces the package's prompts as a whole: a missing file is an error, so prompts are never mixed
silently. The package also has named sets of prompts (`PROMPT_SETS`), which fall back to the default prompts.

Reply forms write placeholders in capitals and underscores, `<answer>SHORT_ANSWER</answer>`, and examples use invented
names, so `is_placeholder` and `copies_example` can tell when a small model copies them.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pyrag.errors import ConfigError
from pyrag_prompts import PROMPT_SETS

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_INCLUDES = ("contract", "helpers", "example")
_FORM_PLACEHOLDER = re.compile(r"\b[A-Z]{2,}(?:_[A-Z]{2,})+\b")
# Forms of earlier versions, still in users' folders, and of the search agents, which keep the form of their training.
_FORMER_PLACEHOLDERS = (
    "the answer, or unknown", "final answer here", "answer here", "search query here", "your query here",
    "the next question", "first sub-query", "second sub-query",
)  # fmt: skip
# Invented for the examples: a reply with one of these names copied it from there.
EXAMPLE_NAMES = (
    "Glass Orchard", "Winter Quay", "Amber Kite", "Mara Lindqvist", "Tomas Ferro", "Brennick", "Halvey",
)  # fmt: skip
_AROUND = " \t\r\n.…,;:!?\"'`*()[]{}<>\\“”‘’"
GUIDANCE = ("rules", "principles")  # kinds of guidance, each in a file beside the agent's template
_GUIDANCE = "{{guidance}}"
_TOOLS = "{{tools}}"  # in system messages of the Plan agent: replaced by `plan.tools.txt` if there are tools

# Every template, with its required placeholders (one of those separated by "|") and its optional ones. A template
# without the question would only cost money, so it is refused.
_TEMPLATES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(required.split()), frozenset(optional.split()))
    for name, required, optional in (
        ("decompose.system", "", ""),
        ("decompose.user", "question", ""),
        ("decompose.retry", "reason", "question"),
        ("plan.system", "", "tools"),
        ("plan.user", "question sub_queries|sub_query_list", ""),
        ("plan.syntax_repair", "source error|error_line", "question"),
        ("plan.runtime_repair", "question source error|error_line", "sub_queries"),
        ("plan.check_repair", "question source error|error_line", "sub_queries"),
        ("joint.system", "", "tools"),
        ("joint.user", "question", ""),
        ("answer.evidence.system", "", ""),
        ("answer.evidence.user", "documents query", "fence"),
        ("answer.aggregation.system", "", ""),
        ("answer.aggregation.user", "query", ""),
        ("answer.retry", "reason", "query"),
    )
}


class Prompts:
    """All templates of one folder. Raises `ConfigError` if the folder is incomplete."""

    def __init__(self, folder: Traversable, rest: Traversable | None = None) -> None:
        self._rest = rest  # folder with the files that a packaged set lacks
        texts = {name: self._text_of(folder, name) for name in _TEMPLATES}
        mentioned = {name for text in texts.values() for name in _PLACEHOLDER.findall(text)}
        included = {name: self._text_of(folder, f"plan.{name}") for name in _INCLUDES if name in mentioned}
        self._texts = {name: _checked(folder, name, _filled(text, included)) for name, text in texts.items()}
        self._folder = folder
        self._methods = folder / "methods"
        self._read: dict[str, str] = {}

    def render(self, template: str, **values: str) -> str:
        """Return a template with its placeholders filled.

        Args:
            template: Name of the template, such as "plan.user".
            values: Texts for placeholders; names that the template does not mention are ignored.
        """
        return _filled(self._texts[template], {"tools": "", **values})

    def render_planner(self, template: str, tools: str = "", corpus: str = "", returns: str = "") -> str:
        """Return a system message of the Plan agent.

        Args:
            template: Name of the template.
            tools: Description of further functions that programs may call; appended if a user's template has no
                placeholder for it.
            corpus: Overview of the documents, if programs may call the functions over the whole corpus; added before
                the tools.
            returns: Description of the type of the final value, which is appended; empty for a text.
        """
        text = self._texts[template]
        parts = [self._filled_part("plan.corpus", {"overview": corpus})] if corpus else []
        parts += [self._filled_part("plan.tools", {"tools": tools})] if tools else []
        offered = "".join(f"\n\n{part}" for part in parts)
        wanted = f"\n\n{self._filled_part('plan.returns', {'returns': returns})}" if returns else ""
        return _filled(text, {"tools": offered}) + (offered if _TOOLS not in text else "") + wanted

    def render_decomposer(self, *, corpus: bool = False) -> str:
        """Return the system message of the Decompose agent.

        Args:
            corpus: Whether programs may call the functions over the whole corpus.
        """
        text = self._texts["decompose.system"]
        return f"{text}\n\n{self._text_of(self._folder, 'decompose.corpus')}" if corpus else text

    def _filled_part(self, template: str, values: Mapping[str, str]) -> str:
        return _filled(self._text_of(self._folder, template), values)

    def render_method(
        self, template: str, values: Mapping[str, str], optional: Collection[str] = ()
    ) -> tuple[str, str]:
        """Return system and user message of a method's template; the system message is empty if there is none.

        Args:
            template: Name of the template, such as "rewrite".
            values: Texts for its placeholders.
            optional: Names among `values` that the template may leave out, as `hera.documents` does.

        Raises:
            ConfigError: A file is missing, or its placeholders differ from the names in `values`.
        """
        system = self._method_text(f"{template}.system", optional=True)
        user = self._method_text(f"{template}.user")
        placeholders = set(_PLACEHOLDER.findall(system.replace(_GUIDANCE, "") + user))
        if wrong := sorted(placeholders ^ (values.keys() - (set(optional) - placeholders))):
            problem = "has an unknown" if wrong[0] in placeholders else "lacks its"
            known = ", ".join(sorted(values)) or "none"
            raise ConfigError(
                f"the prompt {self._methods / template}.user.txt {problem} placeholder {{{{{wrong[0]}}}}}: use {known}"
            )
        return self._guided(_filled(system, values), template), _filled(user, values)

    def has_method(self, template: str) -> bool:
        """Return True if a method's template of this name has a user message."""
        return bool(self._method_text(f"{template}.user", optional=True))

    def retry(self, template: str, reason: str) -> str:
        """Return the message for a malformed text.

        Args:
            template: The method's template. A prompt set without it uses the Answer agent's retry template.
            reason: Description of what is wrong with the text.
        """
        own = self._method_text(f"{template}.retry.user", optional=True)
        return _filled(own, {"reason": reason}) if own else self.render("answer.retry", reason=reason)

    def notice(self, template: str) -> str:
        """Return a method's text without placeholders, such as the message after a malformed turn."""
        return self._guided(self._method_text(template), template.removesuffix(".system"))

    def taught(self, template: str, rules: Sequence[str], principles: Sequence[str]) -> Prompts:
        """Return these prompts with different guidance for one agent.

        Args:
            template: The agent's template.
            rules: Operational rules of the agent.
            principles: Behavioural principles of the agent.
        """
        other = copy.copy(self)
        learned = zip(GUIDANCE, (rules, principles), strict=True)
        other._read = {
            **self._read,
            **{f"{template}.{kind}": "\n".join(f"- {line}" for line in lines) for kind, lines in learned},
        }
        return other

    def guidance(self, template: str) -> str:
        """Return an agent's rules and principles under headings; empty if it has none yet."""
        learned = {kind: self._method_text(f"{template}.{kind}", optional=True) for kind in GUIDANCE}
        return "\n\n".join(
            _filled(self._method_text(f"guidance.{kind}"), {"lines": lines}) for kind, lines in learned.items() if lines
        )

    def _guided(self, system: str, template: str) -> str:
        return system.replace(_GUIDANCE, self.guidance(template)).rstrip() if _GUIDANCE in system else system

    def _method_text(self, name: str, *, optional: bool = False) -> str:
        if name not in self._read:
            folders = [self._methods, *([] if self._rest is None else [self._rest / "methods"])]
            folder = next((folder for folder in folders if (folder / f"{name}.txt").is_file()), None)
            self._read[name] = "" if optional and folder is None else _read(folder or self._methods, name)
        return self._read[name]

    def _text_of(self, folder: Traversable, name: str) -> str:
        there = self._rest is None or (folder / f"{name}.txt").is_file()
        return _read(folder if there or self._rest is None else self._rest, name)


def load_prompts(prompts_dir: str | Path | None = None) -> Prompts:
    """Return the prompts of a folder or packaged set, or the default prompts without a name. They are read once."""
    if prompts_dir is None or str(prompts_dir) in PROMPT_SETS:
        return _packaged("" if prompts_dir is None else str(prompts_dir))
    return Prompts(prompts_folder(prompts_dir))


def prompts_folder(prompts_dir: str | Path | None = None) -> Traversable:
    """Return the folder that the setting `prompts` names. Raises `ConfigError` if it does not exist."""
    if prompts_dir is None:
        return files("pyrag_prompts")
    if str(prompts_dir) in PROMPT_SETS:
        return files("pyrag_prompts") / str(prompts_dir)
    folder = Path(prompts_dir)
    if not folder.is_dir():
        raise ConfigError(
            f"there is no prompts folder {folder} and no packaged set of that name ({', '.join(PROMPT_SETS)}): "
            "check the setting `prompts`, or leave it out"
        )
    return folder


def is_placeholder(text: str) -> bool:
    """Return True if a value is only a placeholder of a reply form, which small models copy."""
    return bool(text.strip()) and _plain(text) in placeholders()


def copies_example(value: object, request: str) -> bool:
    """Return True if a parsed value contains a name that occurs only in the examples and forms of prompts.

    Args:
        value: Value parsed from a reply, of any type whose `repr` shows its texts.
        request: Variable text of the prompt.
    """
    shown = repr(value)
    if _copied_name().search(shown) is None:
        return False
    return any(name in shown and name not in request for name in (*EXAMPLE_NAMES, *_form_names()))


@functools.cache
def _copied_name() -> re.Pattern[str]:
    """Return a pattern that finds any name of the examples or forms, so that most replies are cleared quickly."""
    return re.compile("|".join(map(re.escape, (*EXAMPLE_NAMES, *_form_names()))))


@functools.cache
def placeholders() -> frozenset[str]:
    """Return all placeholder texts of the package's forms, in lower case without underscores.

    The empty text represents "…" and similar ones.
    """
    return frozenset(map(_plain, (*_form_names(), *_FORMER_PLACEHOLDERS, "…")))


@functools.cache
def _form_names() -> frozenset[str]:
    """Return the placeholders in the forms of the package's prompts, as they are written there."""
    folder = files("pyrag_prompts")
    paths = (*folder.iterdir(), *(path for name in ("methods", *PROMPT_SETS) for path in (folder / name).iterdir()))
    texts = [path.read_text(encoding="utf-8") for path in paths if path.name.endswith(".txt")]
    return frozenset(name for text in texts for name in _FORM_PLACEHOLDER.findall(text))


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split()).strip(_AROUND)


@functools.cache
def _packaged(name: str = "") -> Prompts:
    return Prompts(prompts_folder(name or None), prompts_folder() if name else None)


def _filled(text: str, values: Mapping[str, str]) -> str:
    pieces = list(_pieces(text))
    pieces[1::2] = [values.get(name, f"{{{{{name}}}}}") for name in pieces[1::2]]
    return "".join(pieces)


@functools.lru_cache(maxsize=256)
def _pieces(template: str) -> tuple[str, ...]:
    """Split a template into texts and the names of the placeholders between them."""
    return tuple(_PLACEHOLDER.split(template))


def _read(folder: Traversable, name: str) -> str:
    path = folder / f"{name}.txt"
    try:
        return path.read_text(encoding="utf-8").strip("\n")
    except OSError as error:
        raise ConfigError(
            f"the prompts folder {folder} has no readable file {name}.txt: copy it from the package pyrag_prompts"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prompt {path} is not UTF-8 text: save it as UTF-8") from error


def _checked(folder: Traversable, name: str, text: str) -> str:
    placeholders = set(_PLACEHOLDER.findall(text))
    required, optional = _TEMPLATES[name]
    choices = [names.split("|") for names in sorted(required)]
    allowed = {placeholder for choice in choices for placeholder in choice} | optional
    if unknown := sorted(placeholders - allowed):
        known = ", ".join(sorted(allowed | set(_INCLUDES)))
        raise ConfigError(
            f"the prompt {folder / name}.txt has an unknown placeholder {{{{{unknown[0]}}}}}: use {known}"
        )
    if missing := [choice[0] for choice in choices if placeholders.isdisjoint(choice)]:
        raise ConfigError(f"the prompt {folder / name}.txt lacks its placeholder {{{{{missing[0]}}}}}: add it")
    return text
