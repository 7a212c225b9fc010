"""Prompt templates: read from `pyrag_prompts` or from a user's folder, checked once, filled without surprises.

A template is a text file with placeholders `{{name}}`. Only these are special: single braces, `$` and `%` are plain
text, and whatever is filled in is never looked at again, so that braces in a question or a passage stay as they are.
`{{contract}}`, `{{helpers}}` and `{{example}}` stand for the files `plan.contract.txt`, `plan.helpers.txt` and
`plan.example.txt`, so that what several prompts share has one source.

The folder `methods` inside holds what single methods ask a writer: `NAME.user.txt`, and `NAME.system.txt` where there
is one. They are read when first needed, so that a new method brings its own files and a folder for one method needs no
others; their placeholders are those that the method fills, no more and no fewer. One more, `{{guidance}}` in a system
message, stands for what its agent has learned: the operational rules in `NAME.rules.txt` and the behavioural principles
in `NAME.principles.txt`, one a line, as far as these files are there (HERA evolves them, a folder at a time).

A folder of a user replaces the package's prompts as a whole: a file that it lacks is an error, never a silent mixture.
Beside its default prompts the package has sets of other ones, which are named where a folder would be (`PROMPT_SETS`);
what these lack is the default's.

Forms name what belongs in a place by capitals and underscores, `<answer>SHORT_ANSWER</answer>`, and examples are about
invented names, so that `is_placeholder` and `copies_example` can tell when a small model copies them.

Left out: choosing between prompts, and everything that a model replies.
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
# Forms of earlier versions, which own folders still have, and of the search agents, which stay as they were trained.
_FORMER_PLACEHOLDERS = (
    "the answer, or unknown",
    "final answer here",
    "answer here",
    "search query here",
    "your query here",
    "the next question",
    "first sub-query",
    "second sub-query",
)
# Invented for the examples; no text that is asked about has them unless it was taken from there.
EXAMPLE_NAMES = (
    "Glass Orchard",
    "Winter Quay",
    "Amber Kite",
    "Mara Lindqvist",
    "Tomas Ferro",
    "Brennick",
    "Halvey",
)
_AROUND = " \t\r\n.…,;:!?\"'`*()[]{}<>\\“”‘’"
GUIDANCE = ("rules", "principles")  # the kinds of what an agent learns, each a file beside its template
_GUIDANCE = "{{guidance}}"
_TOOLS = "{{tools}}"  # in the system messages of the Plan agent: stands for `plan.tools.txt` where there are tools

# Every template, with the placeholders it must have (one of those that "|" separates) and those it may have. One
# without its question would be asked for nothing; better to refuse it than to bill for it.
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
    """All templates of one folder. Raises `ConfigError` where the folder does not hold what it must."""

    def __init__(self, folder: Traversable, rest: Traversable | None = None) -> None:
        self._rest = rest  # a packaged set's: what the folder lacks
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
            values: Texts for placeholders; those that it does not mention are ignored.
        """
        return _filled(self._texts[template], {"tools": "", **values})

    def render_planner(self, template: str, tools: str = "") -> str:
        """Return a system message of the Plan agent.

        Args:
            template: Name of the template.
            tools: Description of the functions that programs may call besides; a template of a user's folder that has
                no place for it is followed by it.
        """
        text = self._texts[template]
        offered = "\n\n" + _filled(self._text_of(self._folder, "plan.tools"), {"tools": tools}) if tools else ""
        return _filled(text, {"tools": offered}) + (offered if _TOOLS not in text else "")

    def render_method(
        self, template: str, values: Mapping[str, str], optional: Collection[str] = ()
    ) -> tuple[str, str]:
        """System and user message of a method's template; the system message is empty where there is none.

        Args:
            template: Name of the template, such as "rewrite".
            values: Texts for its placeholders.
            optional: Names among `values` that the template may leave out, as folders of earlier versions do.

        Raises:
            ConfigError: The files are missing, or their placeholders are not those that `values` fills.
        """
        system = self._method_text(f"{template}.system", optional=True)
        user = self._method_text(f"{template}.user")
        found = set(_PLACEHOLDER.findall(system.replace(_GUIDANCE, "") + user))
        if wrong := sorted(found ^ (values.keys() - (set(optional) - found))):
            problem = "has an unknown" if wrong[0] in found else "lacks its"
            known = ", ".join(sorted(values)) or "none"
            raise ConfigError(
                f"the prompt {self._methods / template}.user.txt {problem} placeholder {{{{{wrong[0]}}}}}: use {known}"
            )
        return self._guided(_filled(system, values), template), _filled(user, values)

    def has_method(self, template: str) -> bool:
        """Return whether there is a user message of that name for a method."""
        return bool(self._method_text(f"{template}.user", optional=True))

    def retry(self, template: str, reason: str) -> str:
        """Return the message after a text out of form.

        Args:
            template: The method's template; without a retry template of its own, the Answer agent's is used.
            reason: The fault.
        """
        own = self._method_text(f"{template}.retry.user", optional=True)
        return _filled(own, {"reason": reason}) if own else self.render("answer.retry", reason=reason)

    def notice(self, template: str) -> str:
        """A method's text without placeholders, such as what a model is told after a turn out of form."""
        return self._guided(self._method_text(template), template.removesuffix(".system"))

    def taught(self, template: str, rules: Sequence[str], principles: Sequence[str]) -> Prompts:
        """Return these prompts with other guidance for one agent.

        Args:
            template: The agent's template.
            rules: Its operational rules.
            principles: Its behavioural principles.
        """
        other = copy.copy(self)
        learned = zip(GUIDANCE, (rules, principles), strict=True)
        other._read = {
            **self._read,
            **{f"{template}.{kind}": "\n".join(f"- {line}" for line in lines) for kind, lines in learned},
        }
        return other

    def guidance(self, template: str) -> str:
        """Return what an agent has learned, under headings; empty if that is nothing yet."""
        learned = {kind: self._method_text(f"{template}.{kind}", optional=True) for kind in GUIDANCE}
        return "\n\n".join(
            _filled(self._method_text(f"guidance.{kind}"), {"lines": lines}) for kind, lines in learned.items() if lines
        )

    def _guided(self, system: str, template: str) -> str:
        return system.replace(_GUIDANCE, self.guidance(template)).rstrip() if _GUIDANCE in system else system

    def _method_text(self, name: str, *, optional: bool = False) -> str:
        if name not in self._read:
            folders = [self._methods, *([] if self._rest is None else [self._rest / "methods"])]
            folder = next((one for one in folders if (one / f"{name}.txt").is_file()), None)
            self._read[name] = "" if optional and folder is None else _read(folder or self._methods, name)
        return self._read[name]

    def _text_of(self, folder: Traversable, name: str) -> str:
        there = self._rest is None or (folder / f"{name}.txt").is_file()
        return _read(folder if there or self._rest is None else self._rest, name)


def load_prompts(prompts_dir: str | Path | None = None) -> Prompts:
    """The prompts of a folder or of a packaged set; without either the package's own, which are read once."""
    if prompts_dir is None or str(prompts_dir) in PROMPT_SETS:
        return _packaged("" if prompts_dir is None else str(prompts_dir))
    return Prompts(prompts_folder(prompts_dir))


def prompts_folder(prompts_dir: str | Path | None = None) -> Traversable:
    """Return the folder that the setting `prompts` names. Raises `ConfigError` where there is none."""
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
    """True if a reply's value is only what a form shows in its place, as small models copy it."""
    return bool(text.strip()) and _plain(text) in placeholders()


def copies_example(value: object, request: str) -> bool:
    """True if a value read from a reply names what only the prompts' examples and forms name.

    Args:
        value: What a parser made of the reply, in any type whose `repr` shows its texts.
        request: What the agent was asked and shown, without the prompt's own text.
    """
    said = repr(value)
    return any(name in said and name not in request for name in (*EXAMPLE_NAMES, *_form_names()))


@functools.cache
def placeholders() -> frozenset[str]:
    """All texts that forms of the package's prompts show in place of a value, in lower case without underscores.

    The empty one stands for "…" and the like.
    """
    return frozenset(map(_plain, (*_form_names(), *_FORMER_PLACEHOLDERS, "…")))


@functools.cache
def _form_names() -> frozenset[str]:
    """The placeholders in forms of the package's prompts, as they are written there."""
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
    """A template's texts and, between them, the names of its placeholders."""
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
    found = set(_PLACEHOLDER.findall(text))
    required, optional = _TEMPLATES[name]
    choices = [one.split("|") for one in sorted(required)]
    offered = {one for choice in choices for one in choice} | optional
    if unknown := sorted(found - offered):
        known = ", ".join(sorted(offered | set(_INCLUDES)))
        raise ConfigError(
            f"the prompt {folder / name}.txt has an unknown placeholder {{{{{unknown[0]}}}}}: use {known}"
        )
    if missing := [choice[0] for choice in choices if found.isdisjoint(choice)]:
        raise ConfigError(f"the prompt {folder / name}.txt lacks its placeholder {{{{{missing[0]}}}}}: add it")
    return text
