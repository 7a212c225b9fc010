"""`pyrag models`: list the models that a server offers."""

from __future__ import annotations

import asyncio

from pyrag.cli.output import print_json
from pyrag.errors import UsageError
from pyrag.llm.protocol import ModelInfo, ModelLister
from pyrag.settings import Settings


def show(settings: Settings, *, as_json: bool) -> None:
    """Print one model per line: id, base model of an adapter, context window in tokens.

    Args:
        settings: Names the engine.
        as_json: Print one JSON line.

    Raises:
        UsageError: The engine lists no models.
    """
    found = asyncio.run(_offered(settings))
    if as_json:
        print_json(found)
        return
    for model in found:
        told = [f"adapter of {model.parent}" if model.parent else ""]
        told += [f"{model.context_tokens} tokens" if model.context_tokens else ""]
        print("\t".join([model.id, *filter(None, told)]))


async def _offered(settings: Settings) -> list[ModelInfo]:
    from pyrag.llm.spec import open_chat_model
    from pyrag.runtime.engines import REPLAY, about_embedded, model_options

    spec = settings.llm
    if not (about_embedded(spec) or spec.startswith(REPLAY)):
        model = open_chat_model(spec, model_options(settings))
        try:
            if isinstance(model, ModelLister):
                return await model.offered()
        finally:
            await model.aclose()
    engine = spec.partition(":")[0]
    raise UsageError(f"the engine {engine} offers no models: name a server with --llm openai:@http://host:port/v1")
