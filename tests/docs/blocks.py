"""Code blocks of README and docs: their language, text and mark, and what stands for placeholders in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "console", "json", "toml", "ini", "text"}
_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*?) -->\n)?^(?P<fence>```|~~~)(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.M | re.S,
)
_MARK = re.compile(r"^\s*<!--\s*not run", re.I | re.M)
_COMMAND = re.compile(
    r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:pip|pyrag|docker|export|python3?|make|curl|git|from|import) ", re.M
)


@dataclass(frozen=True, slots=True)
class Block:
    """`reason` says why a block is not run: `<!-- not run: REASON -->` on the line before its fence."""

    page: str
    line: int
    language: str
    text: str
    reason: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """Return the name of a page: its place below docs."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            name_of(page),
            text.count("\n", 0, match.start("language")) + 1,
            match["language"],
            match["text"],
            match["reason"] or "",
        )
        for match in _FENCE.finditer(text)
    ]


def marks_in(page: Path) -> int:
    """The number of marks on a page, those that no block follows included."""
    return len(_MARK.findall(page.read_text(encoding="utf-8")))


def indented_commands(page: Path) -> list[str]:
    """Indented blocks that hold commands or Python, which belong into fences, where they are run."""
    text = re.sub(r"^(```|~~~).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    paragraphs = re.findall(r"(?:^ {4}.*\n)+", text, re.M)
    return [paragraph for paragraph in paragraphs if _COMMAND.search(re.sub(r"^ {4}", "", paragraph, flags=re.M))]


def commands_of(block: Block) -> list[str]:
    """The commands of a console block: lines after `$ `, with the lines that a backslash joins to them."""
    commands: list[str] = []
    joined = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
        elif joined:
            commands[-1] += f"\n{line}"
        joined = line.endswith("\\")
    return commands


def shown_output(block: Block, number: int) -> str:
    """Return the output that a console block shows below one of its commands.

    Args:
        block: The block.
        number: Number of the command, from 0.
    """
    commands = re.split(r"^\$ ", block.text, flags=re.M)[1:]
    _, _, output = re.sub(r"\\\n", " ", commands[number]).partition("\n")
    return output


def expected_prints(source: str) -> list[str]:
    """What the comments behind `print(…)` say that is printed, in their order."""
    return re.findall(r"^print\(.*\)  # (.+)$", source, re.M)


def filled_in(text: str, servers: str, own: str) -> str:
    """Return a block with addresses and texts in place of its placeholders.

    Args:
        text: A command or a Python block.
        servers: Address of the scripted model and search server, as http://host:port.
        own: Port of the `pyrag serve` that an earlier command started.
    """
    text = re.sub(
        r"(openai:[\w./-]*)@(?:URL|http://(?:127\.0\.0\.1|HOST|host):(?:8000|port)/v1)", rf"\1@{servers}/v1", text
    )
    text = re.sub(r"http://(?:127\.0\.0\.1|HOST|host):(?:8008|8080|port)\b", servers, text)
    text = re.sub(r"localhost:8010\b", f"localhost:{own}", text)
    text = text.replace(".venv/bin/pyrag", "pyrag")
    return text.replace('"…"', '"When was Jed Hoyer born?"')
