"""Command that runs the checks without pytest. It prints one line per check, and exits with 1 if there is a problem.

    python -m pyrag.testing retriever my_package.search:catalogue --query "grain mill" --finds mill-1
    python -m pyrag.testing catalogue my_package.search:catalogue --where 'team = "ops"'
    python -m pyrag.testing model openai:MODEL@http://127.0.0.1:8000/v1
    python -m pyrag.testing tool my_tools:population --call '{"city": "Alpha"}'
    python -m pyrag.testing store my_package.store:make

OBJECT is MODULE:NAME of an object, or of a function or class without parameters that creates it (for a store, once per
check). A retriever or catalogue may also be an index folder or any spec of `--retriever`, and a model any spec of
`--llm`, including specs of installed packages.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from pyrag._io import plugins
from pyrag.errors import ConfigError, PyRAGError
from pyrag.testing.catalogues import CATALOGUE_CHECKS, CatalogueCase
from pyrag.testing.checks import CheckResult, findings
from pyrag.testing.models import MODEL_CHECKS, ModelCase
from pyrag.testing.retrievers import RETRIEVER_CHECKS, RetrieverCase
from pyrag.testing.stores import STORE_CHECKS, StoreCase
from pyrag.testing.tools import TOOL_CHECKS, ToolCase
from pyrag.tools.tool import as_tools


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return its exit code: 0 if all checks passed, 1 for problems, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        results = asyncio.run(_checked(options))
    except PyRAGError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    for result in results:
        sys.stdout.write(f"ok    {result.check}\n" if result.passed else f"FAIL  {result.check}: {result.problem}\n")
    return 0 if all(result.passed for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pyrag.testing", description="Check a part for pyrag.")
    parser.add_argument("kind", choices=("retriever", "catalogue", "model", "store", "tool"))
    parser.add_argument("object", help="MODULE:NAME, or a spec of pyrag")
    parser.add_argument("--query", default="", help="a query that finds something (retriever)")
    parser.add_argument("--finds", default="", help="id of a passage that it finds (retriever)")
    parser.add_argument("--where", default="", help="a filter that some documents pass (catalogue)")
    parser.add_argument("--call", action="append", default=[], help="keyword arguments as JSON (tool); repeatable")
    return parser


async def _checked(options: argparse.Namespace) -> list[CheckResult]:
    if options.kind in ("retriever", "catalogue"):
        return await _checked_retriever(options)
    if options.kind == "model":
        model = _model(options.object)
        try:
            return await findings(MODEL_CHECKS, ModelCase(model))
        finally:
            await model.aclose()
    if options.kind == "store":
        return await findings(STORE_CHECKS, StoreCase(_imported(options.object), _close))
    try:
        calls = [json.loads(text) for text in options.call]
    except ValueError as error:
        raise ConfigError(f'--call is not JSON ({error}): write an object, as in \'{{"city": "Alpha"}}\'') from error
    (tool,) = as_tools([_imported(options.object)])
    return await findings(TOOL_CHECKS, ToolCase(tool, calls or [{}]))


async def _checked_retriever(options: argparse.Namespace) -> list[CheckResult]:
    from pyrag.retrieval import open_retriever
    from pyrag.retrieval.open import is_remote

    if options.kind == "retriever" and not options.query:
        raise ConfigError("a retriever needs --query with words that find something")
    named = "/" not in options.object and ":" in options.object and not is_remote(options.object)
    retriever: Any = _made(_imported(options.object)) if named else open_retriever(options.object)
    try:
        if options.kind == "catalogue":
            return await findings(CATALOGUE_CHECKS, CatalogueCase(retriever, options.where))
        return await findings(RETRIEVER_CHECKS, RetrieverCase(retriever, options.query, options.finds))
    finally:
        await retriever.aclose()


def _model(spec: str) -> Any:
    from pyrag.llm.spec import FORMS, open_chat_model

    schemes = {form.partition(":")[0] for form in FORMS} | set(plugins.names("engines"))
    return open_chat_model(spec) if spec.partition(":")[0] in schemes else _made(_imported(spec))


def _imported(spec: str) -> Any:
    module, _, name = spec.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{spec!r} names nothing ({error}): write MODULE:NAME") from error


def _made(value: Any) -> Any:
    return value() if inspect.isclass(value) or inspect.isfunction(value) else value


def _close(store: Any) -> None:
    close = getattr(store, "close", None)
    if callable(close):
        close()


if __name__ == "__main__":
    sys.exit(main())
