"""Update of the documents that were sent to an index over HTTP."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pyrag.retrieval.index import Built, published, read_info, sources_of, write_errors
from pyrag.retrieval.indexing.sources import WantedSources, named_sources
from pyrag.retrieval.sent import FOLDER

if TYPE_CHECKING:
    from pyrag.retrieval.indexing.part_protocol import Part


def _ignore(*_: object) -> None:
    pass


def update_sent_documents(out: str | Path, names: Iterable[str], parts: tuple[Part, ...]) -> Built:
    """Update an index from some documents that were sent to it, and change nothing else.

    The other files of the index are not looked at: they may be on another machine, or far too many.

    Args:
        out: Folder of the index.
        names: Names of the documents' files in the folder of sent documents. A file that does not exist is removed.
        parts: Parts of the index.

    Raises:
        DataError: The folder is not an index of this version.
        PyRAGError: The index cannot be written.
    """
    from pyrag.retrieval.indexing.build import Build, BuildOptions, check_base, columns_of
    from pyrag.retrieval.indexing.staging import staging_lock

    target = Path(os.path.realpath(out))
    with write_errors(Path(out)), staging_lock(target, _ignore) as work:
        before = read_info(out)
        base = target / before.generation
        options = BuildOptions(parts=parts, columns=columns_of(base), resume=False)
        check_base(options, base, Path(out))
        known = sources_of(before)
        sent = named_sources([target / FOLDER], known)
        others = [source for source in known if source.name != sent[0].name]
        files = {f"{sent[0].name}/{name}": sent[0].path / name for name in names}
        outcome = Build(work, options, _ignore).run(lambda update: update.run_only(files, (*sent, *known)), base)
        wanted = WantedSources((*others, *sent), before.excluded, may_be_empty=True)
        return published(work, target, options, before, outcome, wanted)
