"""Run the checks without pytest: a line for each, and exit code 1 where there is a problem.

    python -m pyrag.testing retriever my_package.search:catalogue --query "grain mill" --finds mill-1
    python -m pyrag.testing model openai:MODEL@http://127.0.0.1:8000/v1
    python -m pyrag.testing tool my_tools:population --call '{"city": "Alpha"}'
    python -m pyrag.testing store my_package.store:make

OBJECT is MODULE:NAME of an object, or of a function or class without parameters that makes it (a store's is called for
each check). A retriever may be an index folder or any spec of `--retriever`, a model any spec of `--llm`, those of
installed packages too.
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
from pyrag.testing.checks import CheckResult, findings
from pyrag.testing.models import MODEL_CHECKS, ModelCase
from pyrag.testing.retrievers import RETRIEVER_CHECKS, RetrieverCase
from pyrag.testing.stores import STORE_CHECKS, StoreCase
from pyrag.testing.tools import TOOL_CHECKS, ToolCase
from pyrag.tools.tool import as_tools


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return its exit code: 0 if all passed, 1 for problems, 2 for arguments that make no sense."""
    given = _parser().parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = asyncio.run(_checked(given))
    except PyRAGError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    for one in found:
        sys.stdout.write(f"ok    {one.check}\n" if one.passed else f"FAIL  {one.check}: {one.problem}\n")
    return 0 if all(one.passed for one in found) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pyrag.testing", description="Check a part for pyrag.")
    parser.add_argument("kind", choices=("retriever", "model", "store", "tool"))
    parser.add_argument("object", help="MODULE:NAME, or a spec of pyrag")
    parser.add_argument("--query", default="", help="a query that finds something (retriever)")
    parser.add_argument("--finds", default="", help="id of a passage that it finds (retriever)")
    parser.add_argument("--call", action="append", default=[], help="keyword arguments as JSON (tool); repeatable")
    return parser


async def _checked(given: argparse.Namespace) -> list[CheckResult]:
    if given.kind == "retriever":
        return await _checked_retriever(given)
    if given.kind == "model":
        model = _model(given.object)
        try:
            return await findings(MODEL_CHECKS, ModelCase(model))
        finally:
            await model.aclose()
    if given.kind == "store":
        return await findings(STORE_CHECKS, StoreCase(_found(given.object), _close))
    try:
        calls = [json.loads(one) for one in given.call]
    except ValueError as error:
        raise ConfigError(f'--call is no JSON ({error}): write an object, as in \'{{"city": "Alpha"}}\'') from error
    (tool,) = as_tools([_found(given.object)])
    return await findings(TOOL_CHECKS, ToolCase(tool, calls or [{}]))


async def _checked_retriever(given: argparse.Namespace) -> list[CheckResult]:
    from pyrag.retrieval import open_retriever
    from pyrag.retrieval.open import is_remote

    if not given.query:
        raise ConfigError("a retriever needs --query with words that find something")
    named = "/" not in given.object and ":" in given.object and not is_remote(given.object)
    retriever = _made(_found(given.object)) if named else open_retriever(given.object)
    try:
        return await findings(RETRIEVER_CHECKS, RetrieverCase(retriever, given.query, given.finds))
    finally:
        await retriever.aclose()


def _model(spec: str) -> Any:
    from pyrag.llm.spec import FORMS, open_chat_model

    schemes = {form.partition(":")[0] for form in FORMS} | set(plugins.names("engines"))
    return open_chat_model(spec) if spec.partition(":")[0] in schemes else _made(_found(spec))


def _found(spec: str) -> Any:
    module, _, name = spec.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{spec!r} names nothing ({error}): write MODULE:NAME") from error


def _made(found: Any) -> Any:
    return found() if inspect.isclass(found) or inspect.isfunction(found) else found


def _close(store: Any) -> None:
    close = getattr(store, "close", None)
    if callable(close):
        close()


if __name__ == "__main__":
    sys.exit(main())
