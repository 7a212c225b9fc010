"""A service of your own around pyrag: each key sees the passages of its team only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import compare_digest
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field

from pyrag import PyRAG

# In production, read these from a secret store. The value is the filter of everything that the key's owner may see.
KEYS = {"a-key-of-operations": 'team = "ops"', "a-key-of-the-office": 'team = "hr"'}
rag = PyRAG(index="my-index", max_calls=20, deadline=60.0)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield
    await rag.aclose()


app = FastAPI(lifespan=lifespan)


class Question(BaseModel):
    question: str = Field(min_length=1, max_length=2_000)


def permission(x_api_key: Annotated[str, Header()] = "") -> str:
    """Return the filter that a request's key is bound to."""
    for key, where in KEYS.items():
        if compare_digest(key.encode(), x_api_key.encode()):
            return where
    raise HTTPException(401, "send a valid key in X-API-Key")


@app.post("/ask")
async def ask(body: Question, where: Annotated[str, Depends(permission)]) -> dict[str, Any]:
    """Answer a question from what the key may see."""
    trace = await rag.aask(body.question, where=where)
    if trace.error:
        raise HTTPException(502, trace.error.message)
    return {
        "answer": trace.answer.text,
        "known": trace.answer.known,
        "citations": [trace.passages[citation.passage].title for citation in trace.citations],
    }
