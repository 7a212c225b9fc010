"""Description of a paper's table or figure: rows, models, passages and training, and what cannot be reproduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WIKI, WIKI_BGE, OWN, NEWS = "wiki-18", "wiki-18-bge", "own-passages", "multihoprag"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row: a method with its settings.

    Attributes:
        name: Name in pyrag's report and in the run's folder.
        method: Name of the method in pyrag's registry; empty for a row that only trains or evolves.
        paper: Source in `pyrag.evaluation.reports.paper_scores`, where `{model}` stands for the backbone's label.
        model: Short name of the model; empty for the backbone that `--models` names.
        plan: Model of the Plan agent (in HERA, of the orchestrator); empty for `model`.
        rewrite: Model of the Rewrite agent; empty for `model`.
        training: Name of a recipe (`pyrag.reproduce.recipes`) whose result is measured.
        options: Further options of `pyrag bench`.
        figures: Exact match by set, for figures that `reported` lacks.
    """

    name: str
    method: str
    paper: str = ""
    model: str = ""
    plan: str = ""
    rewrite: str = ""
    training: str = ""
    options: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def fixed(self) -> bool:
        """True if the row is the same for all backbones."""
        return bool(self.model and not self.training and self.plan in ("", self.model))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table or figure of a paper.

    Attributes:
        key: Name on the command line, such as "pyrag/table2".
        title: Short description.
        models: Backbones that `--models` may name; the first is the default.
        corpora: Question sets, by the passages they are answered from.
        rows: Rows in the paper's order.
        limit: Maximum number of questions per set; None for all.
        section: Section of the benchmark report with the table's own figures, if it is not about exact match.
        remarks: Differences from the paper, including what cannot be reproduced.
    """

    key: str
    title: str
    models: tuple[str, ...]
    corpora: Mapping[str, tuple[str, ...]]
    rows: tuple[TableRow, ...]
    limit: int | None = None
    section: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of all question sets."""
        return tuple(name for names in self.corpora.values() for name in names)

    @property
    def paper(self) -> str:
        """Name of the paper: pyrag, opera or hera."""
        return self.key.partition("/")[0]
