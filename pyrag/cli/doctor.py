"""`pyrag doctor`: checks of the installation, settings and engines; `pyrag models`: the models of a server."""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pyrag
import pyrag_runtime
from pyrag._io import plugins
from pyrag.agents.engine import about_engine
from pyrag.cli.output import print_json
from pyrag.errors import ConfigError, PyRAGError, UsageError, install_extra
from pyrag.llm.protocol import ModelInfo, ModelLister
from pyrag.retrieval.protocol import searched_index
from pyrag.runtime.engines import Engines, open_engines
from pyrag.runtime.role_agents import LOCAL_ENGINES, REPLAY, model_options
from pyrag.settings import Settings
from pyrag.trace.words import counted

PACKAGES = ("RestrictedPython", "greenlet", "aiohttp", "tantivy", "msgspec", "typer", "rich")
_LAYERS = {"linux": ("no_new_privs", "seccomp"), "darwin": ("seatbelt",)}  # of the sandbox, which only one system has
# What each extra is for. Those of one system only are left out elsewhere.
PURPOSES = {
    "cluster": "Qdrant",
    "data": "pyrag data",
    "dense": "embedders and rerankers of the hub",
    "docs": "PDF and HTML files",
    "duckdb": "DuckDB files in sql tools",
    "embedded": "the offline engine and indexes of vectors",
    "mcp": "pyrag mcp",
    "office": "office files",
    "otel": "OpenTelemetry",
    "pgvector": "PostgreSQL",
    "ray": "several machines",
    "rl": "pyrag train",
    "serve": "pyrag serve",
    "transformers": "transformers:MODEL",
    "vllm": "vllm:MODEL on a GPU",
}
_LINUX_ONLY = ("rl", "vllm")
_REQUIREMENT = re.compile(r"([\w.-]+).*\bextra\s*==\s*['\"](\w+)['\"]")


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: what was checked, whether it works, and details or the fault."""

    what: str
    ok: bool
    detail: str


def examine(settings: Settings, *, as_json: bool) -> None:
    """Print the findings; exit with code 1 if a check failed.

    Args:
        settings: Settings with the engines to check.
        as_json: Print JSON instead of lines.
    """
    findings = asyncio.run(_examine(settings))
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'} {finding.what}: {finding.detail}")
        print(_summary(findings))
    if not all(finding.ok for finding in findings):
        sys.exit(1)


async def _examine(settings: Settings) -> list[Finding]:
    findings = [
        Finding("python", True, f"{platform.python_version()} on {platform.platform()}"),
        _packages(),
        _extras(),
        Finding("local models", True, ", ".join(map(_local_engine, LOCAL_ENGINES))),
        *_plugins(),
    ]
    try:
        engines = open_engines(settings)
    except PyRAGError as error:
        return [*findings, Finding("settings", False, str(error))]
    try:
        findings += [
            await _checked("sandbox", lambda: _sandbox(engines)),
            *[
                await _checked(role, lambda spec=spec: _engine(spec, settings))  # type: ignore[misc]
                for role, spec in _specs(settings).items()
            ],
            await _checked("retriever", lambda: _retriever(engines)),
        ]
        if engines.tools:
            findings.append(Finding("tools", True, ", ".join(str(tool.name) for tool in engines.tools)))
    finally:
        await engines.aclose()
    return findings


def _packages() -> Finding:
    versions = [f"pyrag {pyrag.__version__}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            return Finding("packages", False, f"{name} is not installed: {install_extra()}")
    return Finding("packages", True, ", ".join(versions))


def _extras() -> Finding:
    """Return which extras are installed, and how to install the others that this system supports."""
    packages: dict[str, list[str]] = {}
    try:
        requirements = importlib.metadata.requires(pyrag_runtime.DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []  # a checkout that is on the path only
    for requirement in requirements:
        if (match := _REQUIREMENT.match(requirement)) and match[1] != pyrag_runtime.DISTRIBUTION:
            packages.setdefault(match[2], []).append(match[1])
    usable = {extra: names for extra, names in packages.items() if sys.platform == "linux" or extra not in _LINUX_ONLY}
    usable.pop("all", None)  # extras of extras only
    present = sorted(extra for extra, names in usable.items() if all(map(_is_installed, names)))
    missing = [f"{extra} ({PURPOSES.get(extra, extra)})" for extra in sorted(usable) if extra not in present]
    parts = [f"installed: {', '.join(present)}"] if present else []
    parts += [f"missing: {', '.join(missing)}; {install_extra('NAME')}"] if missing else []
    return Finding("extras", True, "; ".join(parts) or "unknown, since pyrag is not installed as a package")


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _summary(findings: list[Finding]) -> str:
    failed = [finding.what for finding in findings if not finding.ok]
    if failed:
        return f"{len(failed)} of {counted(len(findings), 'check')} failed: {', '.join(failed)}"
    return f"pyrag is ready: {counted(len(findings), 'check')} passed"


def _plugins() -> list[Finding]:
    """Return the parts that installed packages add, and report those that cannot be used."""
    findings = []
    for kind in plugins.OWN:
        wrong, usable = list(plugins.problems(kind)), []
        for name in plugins.names(kind):
            try:
                plugins.load(kind, name)
            except ConfigError as error:
                wrong.append(str(error))
            else:
                usable.append(f"{name} ({plugins.package_of_part(kind, name)})")
        findings += [Finding(f"{kind} of packages", True, ", ".join(usable))] if usable else []
        findings += [Finding(f"{kind} of packages", False, problem) for problem in wrong]
    return findings


def _local_engine(name: str) -> str:
    """Return a note on an engine's package. The package is not imported, since this would take seconds."""
    try:
        return f"{name}: with {name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{name}: not installed ({install_extra(name)})"


def _specs(settings: Settings) -> dict[str, str]:
    specs = {
        "engine": settings.llm,
        "plan engine": settings.plan_llm,
        "decompose engine": settings.decompose_llm,
        "answer engine": settings.answer_llm,
        "rewrite engine": settings.rewrite_llm,
    }
    return {role: spec for role, spec in specs.items() if spec}


async def _checked(what: str, examine: Callable[[], Awaitable[str]]) -> Finding:
    from pyrag_sandbox import SandboxError

    try:
        return Finding(what, True, await examine())
    except (PyRAGError, SandboxError) as error:
        return Finding(what, False, str(error))


async def _sandbox(engines: Engines) -> str:
    from pyrag_helpers import MODULE
    from pyrag_sandbox import SandboxError, capabilities

    outcome = await engines.sandbox.run("final_answer = 6 * 7", {}, helpers=MODULE)
    if outcome.value != 42:
        raise SandboxError(f"a program that should give 42 ended {outcome.status} ({outcome.reason})")
    foreign = [layer for system, layers in _LAYERS.items() if system != sys.platform for layer in layers]
    own = {layer: on for layer, on in capabilities().items() if layer not in foreign}
    layers = ", ".join(f"{layer} {'on' if on else 'OFF'}" for layer, on in own.items())
    cure = "" if all(own.values()) else "; run on a kernel with all of these before you run untrusted programs"
    return f"runs programs; {layers}{cure}"


async def _engine(spec: str, settings: Settings) -> str:
    if about := about_engine(spec):
        return f"{spec}: {about}; good for trying things out"
    if spec.startswith(REPLAY):
        return f"{spec}: answers from a recording"
    from pyrag.llm.spec import open_chat_model

    model = open_chat_model(spec, model_options(settings))
    if spec.partition(":")[0] in LOCAL_ENGINES:
        await model.aclose()
        return f"{model.name} can be loaded, with the first question"
    try:
        lists = getattr(model, "models", None)
        names = ", ".join(await lists()) if lists else "scripted replies"
    finally:
        await model.aclose()
    return f"{model.name} answers; offers {names}"


async def _retriever(engines: Engines) -> str:
    """Return the result of a test query. An index without the query's words is not at fault."""
    passages = await engines.retriever.retrieve("who wrote this", 1)
    count = searched_index(engines.retriever).passages
    size = "" if count is None else f"; it holds {counted(count, 'passage')}"
    cure = ": add documents with pyrag index" if count == 0 else ""
    first = f"; first passage for a test query: {passages[0].title!r}" if passages else ""
    return f"{engines.retriever.name} answers{size}{cure}{first}"


def show_models(settings: Settings, *, as_json: bool) -> None:
    """Print one model per line: id, base model of an adapter, context window in tokens.

    Args:
        settings: Settings with the engine.
        as_json: Print one JSON line instead.

    Raises:
        UsageError: The engine lists no models.
    """
    models = asyncio.run(_offered(settings))
    if as_json:
        print_json(models)
        return
    for model in models:
        facts = [f"adapter of {model.parent}" if model.parent else ""]
        facts += [f"{model.context_tokens} tokens" if model.context_tokens else ""]
        print("\t".join([model.id, *filter(None, facts)]))


async def _offered(settings: Settings) -> list[ModelInfo]:
    from pyrag.llm.spec import open_chat_model

    spec = settings.llm
    if not (about_engine(spec) or spec.startswith(REPLAY)):
        model = open_chat_model(spec, model_options(settings))
        try:
            if isinstance(model, ModelLister):
                return await model.offered()
        finally:
            await model.aclose()
    engine = spec.partition(":")[0]
    raise UsageError(f"the engine {engine} offers no models: name a server with --llm openai:@http://host:port/v1")
