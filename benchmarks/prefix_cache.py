"""Prompt tokens that vLLM servers found in their prefix caches, from the servers' metrics."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pyrag.evaluation.reports.writer import Table

_COUNTED = re.compile(r"^vllm:prefix_cache_(queries|hits)_total(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Number of prompt tokens that a server received, and the part found in its cache."""

    queries: int
    hits: int

    def __sub__(self, earlier: PrefixCache) -> PrefixCache:
        return PrefixCache(self.queries - earlier.queries, self.hits - earlier.hits)

    @property
    def share(self) -> float:
        """Share of the prompt tokens found in the cache, from 0 to 1; 0 without prompts."""
        return self.hits / self.queries if self.queries else 0.0


def read_metrics(text: str) -> PrefixCache:
    """Read the counters of a server's metrics.

    Args:
        text: Metrics in Prometheus' text format.
    """
    sums = {"queries": 0.0, "hits": 0.0}
    for name, value in _COUNTED.findall(text):
        sums[name] += float(value)
    return PrefixCache(int(sums["queries"]), int(sums["hits"]))


def prefix_caches(engines: Mapping[str, str]) -> dict[str, PrefixCache]:
    """Ask servers for their counters.

    Args:
        engines: Specs `openai:MODEL@URL/v1` of vLLM servers, by name.
    """
    caches = {}
    for name, engine in engines.items():
        url = engine.partition("@")[2].removesuffix("/v1") + "/metrics"
        with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 (loopback)
            caches[name] = read_metrics(reply.read().decode())
    return caches


def record_prefix_caches(
    file: Path, row: str, before: Mapping[str, PrefixCache], after: Mapping[str, PrefixCache]
) -> None:
    """Append a line for each server that answered during a row.

    Args:
        file: JSON Lines file to append to.
        row: Name of the row.
        before: Counters by server before the row.
        after: Counters by server after it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        for server, counted in after.items():
            print(json.dumps({"row": row, "server": server, **asdict(counted - before[server])}), file=lines)


def prefix_cache_table(file: Path) -> Table:
    """Return a table that adds up the counters of a file by row and server.

    Args:
        file: JSON Lines file that `record_prefix_caches` wrote.
    """
    sums: dict[tuple[str, str], PrefixCache] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        key, so_far = (entry["row"], entry["server"]), sums.get((entry["row"], entry["server"]), PrefixCache(0, 0))
        sums[key] = PrefixCache(so_far.queries + entry["queries"], so_far.hits + entry["hits"])
    rows = [(*key, f"{cache.queries:,}", f"{cache.share:.0%}") for key, cache in sums.items()]
    return Table(["row", "server", "prompt tokens", "from the prefix cache"], rows)
