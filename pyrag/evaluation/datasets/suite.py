"""Question sets of a benchmark by name, samples of them, and the passages of each.

A set is a folder in `--data` in the common layout, or one of the bundled mini sets. A mini set imitates the set in its
name: `mini-popqa` is not PopQA. A set's own corpus takes precedence; sets without a corpus (Bamboogle, NQ) use the
passages that the user names. Indexes are built once, and named after the corpus's digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyrag._io.redaction import without_secrets
from pyrag.errors import DataError, UsageError, nearest
from pyrag.evaluation.datasets.layout import Question, find_file, read_questions
from pyrag.trace.model import Passage

FIVE = ("popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
MINI = "mini-"
REPAIRED_CORPUS = "wiki-fixed"  # its results are not compared with the papers'
BUNDLED = Path(str(files("pyrag"))) / "data" / "mini"
BUNDLED_CORPUS = BUNDLED.parent / "corpus.jsonl"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Question set of a benchmark: `questions` is the sample, `sha256` the digest of the whole file."""

    name: str
    path: Path
    sha256: str
    questions: tuple[Question, ...]
    corpus: Path | None = None
    bundled: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Passages of a set. At most one of `index` and `retriever` is set; if neither is, the bundled corpus is used.

    Attributes:
        name: Name for display and for the run's record.
        identity: Digest of the corpus or generation of the index; empty for a server.
        index: Folder of the index; one of `corpora` may still have to be built (`build_index`).
        retriever: Address of a server.
        corpora: Files that the index is built from, if known.
        sources: Several sources that are searched as one, instead of `index` and `retriever`.
        unused: Option that named other passages, and is ignored because the set has its own corpus.
    """

    name: str
    identity: str = ""
    index: Path | None = None
    retriever: str | None = None
    corpora: tuple[Path, ...] = ()
    sources: tuple[str, ...] = ()
    unused: str = ""

    @property
    def overrides(self) -> dict[str, Any]:
        """Settings that select these passages."""
        index = None if self.index is None else str(self.index)
        return {"index": index, "retriever": self.retriever, "sources": self.sources}


@dataclass(frozen=True, slots=True)
class PassageOptions:
    """Passages named by the user: a server for all sets, or a corpus or index for sets without their own."""

    corpora: tuple[Path, ...] = ()
    index: Path | None = None
    retriever: str | None = None
    cache: Path = Path("runs/indexes")  # where indexes are built
    sources: tuple[str, ...] = ()


def default_sets(data: Path | None) -> list[str]:
    """Return the paper's five sets, if `data` has them; without `data`, return the bundled sets named after them."""
    if data is None:
        return [f"{MINI}{name}" for name in FIVE if (BUNDLED / f"{name}.jsonl").is_file()]
    present = [name for name in FIVE if find_file(data / name, "questions")]
    if not present:
        raise DataError(f"{data} holds none of the sets {', '.join(FIVE)}: name a folder of sets, or sets with --sets")
    return present


def open_set(name: str, data: Path | None, *, split: str = "", limit: int | None = None, seed: int = 0) -> QuestionSet:
    """Load a set.

    Args:
        name: Name of the set.
        data: Folder of sets; None for the bundled sets.
        split: Name of the split: "train" for `train_questions`, "gate" for `gate_questions`, else empty.
        limit: Size of the sample; None for all questions.
        seed: Seed of the sample.

    Raises:
        DataError: The file is damaged or empty.
        UsageError: The set does not exist.
    """
    path, corpus = _paths(name, data, f"{split}_" if split else "")
    questions = list(read_questions(path))
    if not questions:
        raise DataError(f"{path} holds no question: name another file or set")
    chosen = sample(questions, limit, seed)
    return QuestionSet(name, path, digest(path), tuple(chosen), corpus, bundled=data is None)


def _paths(name: str, data: Path | None, prefix: str) -> tuple[Path, Path | None]:
    if data is None:
        if prefix:
            raise UsageError("the bundled sets have no training questions: name a folder of sets with --data")
        return _bundled(name), None
    path = find_file(data / name, f"{prefix}questions")
    if path is None:
        folders = sorted(data.iterdir()) if data.is_dir() else []
        names = [folder.name for folder in folders if find_file(folder, f"{prefix}questions")]
        hint = nearest(name, names) if names else ", nor in any other folder there: name another one with --data"
        raise UsageError(f"there is no {prefix}questions.jsonl[.gz] in {data / name}{hint}")
    corpora = (
        (f"{prefix}corpus", "train_corpus") if prefix else ("corpus",)
    )  # gate questions are drawn from training questions
    return path, next(filter(None, (find_file(data / name, stem) for stem in corpora)), None)


def _bundled(name: str) -> Path:
    names = {f"{MINI}{path.stem}": path for path in BUNDLED.glob("*.jsonl")}
    if name not in names:
        hint = nearest(MINI + name.removeprefix(MINI), sorted(names))
        raise UsageError(f"there is no bundled set {name!r}{hint} (your own sets need --data FOLDER)")
    return names[name]


def sample(questions: Sequence[Question], limit: int | None, seed: int) -> list[Question]:
    """Return a sample in the order of the file.

    Questions are chosen by a digest of seed and id, so a larger limit only adds questions, on any machine.

    Args:
        questions: All questions.
        limit: Size of the sample; None for all questions.
        seed: Seed of the sample.
    """
    if limit is None or limit >= len(questions):
        return list(questions)
    ranked = sorted(questions, key=lambda question: hashlib.sha256(f"{seed}:{question.id}".encode()).digest())
    ids = {question.id for question in ranked[:limit]}
    return [question for question in questions if question.id in ids]


def source_of(
    chosen: QuestionSet, named: PassageOptions, building: Callable[[str, Path], None] = lambda *_: None
) -> Source:
    """Return the passages of a set, after building their index.

    Args:
        chosen: The set.
        named: Passages named by the user.
        building: Called with the corpus's name and the folder before an index is built.

    Raises:
        UsageError: The set has no corpus, and the user named no passages.
    """
    source = choose_source(chosen, named)
    build_index(source, building)
    return source


def choose_source(chosen: QuestionSet, named: PassageOptions) -> Source:
    """Return the passages of a set, without building anything.

    Args:
        chosen: The set.
        named: Passages named by the user.

    Raises:
        UsageError: The set has no corpus, and the user named no passages.
    """
    if named.sources:
        return _of_sources(named.sources)
    if named.retriever:
        return Source(without_secrets(named.retriever), retriever=named.retriever)
    if chosen.corpus:
        unused = f"--index {named.index}" if named.index else "--corpus" if named.corpora else ""
        return replace(_to_index((chosen.corpus,), f"{chosen.name} corpus", named.cache), unused=unused)
    if named.index:
        from pyrag.retrieval.index import read_info

        info = read_info(named.index)
        repaired = f" of {REPAIRED_CORPUS}" if any(REPAIRED_CORPUS in path for path in info.sources) else ""
        return Source(f"index {named.index}{repaired}", info.generation, named.index)
    if named.corpora:
        return _to_index(named.corpora, ", ".join(map(str, named.corpora)), named.cache)
    if chosen.bundled:
        return Source("bundled corpus", digest(BUNDLED_CORPUS), corpora=(BUNDLED_CORPUS,))
    raise UsageError(
        f"the set {chosen.name} has no corpus: name one with --corpus FILE, --index FOLDER or --retriever URL, "
        "or leave the set out with --sets"
    )


def _of_sources(specs: tuple[str, ...]) -> Source:
    from pyrag.retrieval.index import read_info
    from pyrag.retrieval.open import source_folders

    name = " + ".join(map(without_secrets, specs))
    generations = " ".join(read_info(folder).generation for folder in source_folders(specs))
    return Source(name, f"{name}: {generations}" if generations else "", sources=specs)


def _to_index(corpora: Sequence[Path], name: str, cache: Path) -> Source:
    sha = _joint_digest(corpora)
    folder = cache / f"{corpora[0].name.partition('.')[0]}-{sha[:16]}"
    return Source(f"{name} (BM25)", sha, folder, corpora=tuple(corpora))


def build_index(source: Source, building: Callable[[str, Path], None] = lambda *_: None) -> None:
    """Build the index of a source's corpora if it is missing.

    Args:
        source: The passages.
        building: Called with the corpus's name and the folder before an index is built.

    Raises:
        DataError: A corpus cannot be read.
    """
    if source.index is None or not source.corpora:
        return
    from pyrag.retrieval.index import read_info, update_index

    try:
        read_info(source.index)
    except DataError:
        building(source.name.removesuffix(" (BM25)"), source.index.parent)
        update_index(source.corpora, source.index)


def _joint_digest(paths: Sequence[Path]) -> str:
    digests = [digest(path) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files and their names. Raises `DataError` if one is unreadable."""
    total = hashlib.sha256()
    try:
        if path.is_file():
            return _file_digest(path)
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            total.update(f"{file.relative_to(path)}:{_file_digest(file)}\n".encode())
    except OSError as error:
        raise DataError(f"cannot read {error.filename or path}: {error.strerror}") from error
    if not path.exists():
        raise DataError(f"there is no {path}: name an existing file or folder")
    return total.hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def gold_passages(chosen: QuestionSet, source: Source) -> dict[str, Passage]:
    """Return the gold passages of a set by id, if a corpus with them is available.

    Args:
        chosen: The set, with its own corpus if it has one.
        source: The passages that are searched.
    """
    ids = {key for question in chosen.questions for key in question.supporting}
    ids |= {key for question in chosen.questions for keys in question.supporting_alt.values() for key in keys}
    own = (chosen.corpus,) if chosen.corpus else (BUNDLED_CORPUS,) if chosen.bundled else source.corpora
    if not ids or not own:
        return {}
    from pyrag.retrieval.documents.reading import read_passages

    return {passage.id: passage for passage in read_passages(own) if passage.id in ids}
