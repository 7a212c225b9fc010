"""One PyRAG in many threads, event loops and processes, and what is left of it at the end of each."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyrag import Event, Passage, PyRAG
from pyrag.errors import UsageError
from pyrag.retrieval.memory import InMemoryRetriever
from tests.cli.conftest import environment
from tests.server.conftest import ModelServer, server

__all__ = ["server"]

QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
ANSWER = "John William Henry II"
ASKED = "Who directed Lantern Street?"
PASSAGES = [Passage("1", "Lantern Street", "Lantern Street is a 1987 film directed by Ada Quill.")]


def in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    """Results of `work` in threads that begin at the same moment; an exception counts as a result."""
    start, results = threading.Barrier(count), []

    def run() -> None:
        start.wait()
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def loop_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "pyrag-loop"}


class Meeting(InMemoryRetriever):
    """Nobody gets passages before `expected` callers wait for them."""

    def __init__(self, expected: int) -> None:
        super().__init__(PASSAGES)
        self.expected, self.waiting, self.all_here = expected, 0, asyncio.Event()

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.waiting += 1
        if self.waiting >= self.expected:
            self.all_here.set()
        await self.all_here.wait()
        return await super().retrieve(query, topk)


class Stuck(InMemoryRetriever):
    """Never answers; says when it was asked, and when the call was cancelled."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked, self.cancelled = threading.Event(), threading.Event()

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.asked.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return []


def test_eight_threads_share_one_object() -> None:
    with PyRAG() as rag:
        found = in_threads(8, lambda: [rag.ask(QUESTION).answer.text for _ in range(4)])
    assert found == [[ANSWER] * 4] * 8


def test_questions_of_threads_run_side_by_side() -> None:
    with PyRAG(retriever=Meeting(expected=8)) as rag:
        found = in_threads(8, lambda: rag.ask(ASKED).answer.text)
    assert found == ["Ada Quill"] * 8


def test_several_loops_share_one_object() -> None:
    rag = PyRAG()
    found = in_threads(6, lambda: [asyncio.run(rag.aask(QUESTION)).answer.text for _ in range(3)])
    assert found == [[ANSWER] * 3] * 6
    assert rag.ask(QUESTION).answer.text == ANSWER
    rag.close()


def test_several_loops_share_a_server_and_a_cache(server: ModelServer, tmp_path: Path) -> None:
    rag = PyRAG(llm=f"openai:tiny@{server.url}", cache=str(tmp_path / "cache.db"))
    found = in_threads(6, lambda: [asyncio.run(rag.aask("Who is Jed Hoyer?")).answer.text for _ in range(2)])
    found += in_threads(6, lambda: [rag.ask("Who is Jed Hoyer?").answer.text for _ in range(2)])
    rag.close()
    assert found == [["an executive"] * 2] * 12


def test_an_observer_is_called_in_the_thread_that_asks() -> None:
    seen: list[tuple[Event, threading.Thread]] = []
    with PyRAG() as rag:
        rag.ask(QUESTION, observer=lambda event: seen.append((event, threading.current_thread())))
    assert {thread for _, thread in seen} == {threading.current_thread()}
    assert {type(event).__name__ for event, _ in seen} >= {"Planned", "StepFinished", "Answered"}
    assert {event.question for event, _ in seen} == {QUESTION}


def test_an_observer_that_fails_ends_the_question() -> None:
    retriever = Stuck()

    def observe(event: Event) -> None:
        retriever.asked.wait()
        raise ValueError("seen enough")

    with PyRAG(retriever=retriever) as rag:
        with pytest.raises(ValueError, match="seen enough"):
            rag.ask(ASKED, observer=observe)
        assert retriever.cancelled.is_set()


def test_closing_ends_questions_of_other_threads() -> None:
    retriever = Stuck()
    rag = PyRAG(retriever=retriever)

    def close() -> None:
        retriever.asked.wait()
        rag.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(UsageError, match="was closed while it answered"):
        rag.ask(ASKED)
    closing.join()
    assert retriever.cancelled.is_set()


def test_a_synchronous_call_from_inside_says_what_to_use() -> None:
    class Recursive(InMemoryRetriever):
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            rag.ask("Who?")
            return []

    with PyRAG(retriever=Recursive([])) as rag:
        error = rag.ask(ASKED).error
    assert error is not None
    assert "await rag.aask" in error.message


def test_a_loop_that_a_retriever_ended_is_replaced() -> None:
    class Leaving(InMemoryRetriever):
        left = False

        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            if not self.left:
                self.left = True
                raise KeyboardInterrupt
            return await super().retrieve(query, topk)

    with PyRAG(retriever=Leaving(PASSAGES)) as rag:
        with pytest.raises(KeyboardInterrupt):
            rag.ask(ASKED)
        assert rag.ask(ASKED).answer.text == "Ada Quill"


def test_the_thread_ends_with_its_object() -> None:
    before = loop_threads()
    rag = PyRAG()
    rag.ask(QUESTION)
    (own,) = loop_threads() - before
    gone = weakref.ref(rag)
    del rag
    gc.collect()
    own.join(60)
    assert gone() is None
    assert not own.is_alive()


async def test_closing_in_a_loop_ends_the_thread_too() -> None:
    before = loop_threads()
    async with PyRAG() as rag:
        rag.ask(QUESTION)
        assert (await rag.aask(QUESTION)).answer.text == ANSWER
    assert loop_threads() == before


def test_a_copy_for_another_process_asks_anew() -> None:
    with PyRAG(topk=3) as rag:
        rag.ask(QUESTION)
        copied = pickle.loads(pickle.dumps(rag))
    with copied:
        assert copied.settings.topk == 3
        assert copied.ask(QUESTION).answer.text == ANSWER


# Processes

HEAD = f"""
import asyncio, atexit, multiprocessing, os, sys, threading
from pyrag import PyRAG
Q = {QUESTION!r}
def ask(rag): return rag.ask(Q).answer.text
def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        print("child", work())
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
AFTER_FORK = f"child {ANSWER}\nparent {ANSWER}\n"
PARENT = 'print("parent", ask(rag))\n'


# Python 3.12 and later warn of every fork of a process with threads, of whatever library.
QUIET = ("-W", "ignore:This process:DeprecationWarning")


def script(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, *QUIET, "-c", HEAD + code]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    "code",
    [
        "rag = PyRAG(); child(lambda: ask(rag)); " + PARENT,
        "rag = PyRAG(); ask(rag); child(lambda: ask(rag)); " + PARENT,
        "rag = PyRAG(); asyncio.run(rag.aask(Q)); child(lambda: asyncio.run(rag.aask(Q)).answer.text); " + PARENT,
        "rag = PyRAG(); ask(rag); child(lambda: (rag.close(), ask(rag))[1]); " + PARENT,
        "rag = PyRAG(embedder='bundled', rerank='reader'); ask(rag); child(lambda: ask(rag)); " + PARENT,
    ],
    ids=["before the first question", "after it", "through loops", "closed in the child", "with a reranker"],
)
def test_a_fork_asks_and_leaves_its_parent_alone(code: str) -> None:
    done = script(code)
    assert (done.stdout, done.stderr, done.returncode) == (AFTER_FORK, "", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forks_while_other_threads_ask() -> None:
    done = script(
        """
rag = PyRAG()
begun, forked = threading.Event(), threading.Event()
def work():
    ask(rag); begun.set()
    while not forked.is_set(): answers.add(ask(rag))
    answers.add(ask(rag))
answers = set()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
begun.wait()
for _ in range(3): child(lambda: ask(rag))
forked.set()
for thread in threads: thread.join()
print(answers)
"""
    )
    assert (done.stdout, done.stderr) == (f"child {ANSWER}\n" * 3 + f"{{{ANSWER!r}}}\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_has_connections_of_its_own(server: ModelServer) -> None:
    asks = "rag.ask('Who is Jed Hoyer?').answer.text"
    code = f"""
rag = PyRAG(llm="openai:tiny@{server.url}")
print({asks})
child(lambda: {asks})
print({asks})
"""
    done = script(code)
    assert (done.stdout, done.stderr) == ("an executive\nchild an executive\nan executive\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_asks(method: str, tmp_path: Path) -> None:
    file = tmp_path / "pool.py"
    main = f"""
if __name__ == "__main__":
    rag = PyRAG(); ask(rag)
    with multiprocessing.get_context({method!r}).Pool(2) as pool: print(pool.map(ask, [rag] * 4))
"""
    file.write_text(HEAD + main)
    done = subprocess.run(
        [sys.executable, *QUIET, file], capture_output=True, text=True, env=environment(), timeout=120
    )
    assert (done.stdout, done.stderr) == (f"{[ANSWER] * 4}\n", "")


@pytest.mark.parametrize(
    "code",
    [
        "print(ask(PyRAG()))",
        "rag = PyRAG(); print(ask(rag))",
        "rag = PyRAG(); print(ask(rag)); sys.exit(0)",
        "rag = PyRAG(); print(asyncio.run(rag.aask(Q)).answer.text)",
        "rag = PyRAG(); threading.Thread(target=lambda: print(ask(rag))).start()",
    ],
    ids=["dropped", "kept", "left", "through a loop", "in a thread"],
)
def test_an_interpreter_ends_without_noise(code: str) -> None:
    done = script(code, "-W", "default")
    assert (done.stdout, done.stderr, done.returncode) == (f"{ANSWER}\n", "", 0)


@pytest.mark.parametrize("ask", ["rag.ask(q)", "asyncio.run(rag.aask(q))"])
def test_connections_end_without_noise(server: ModelServer, ask: str) -> None:
    code = f"rag = PyRAG(llm='openai:tiny@{server.url}'); q = 'Who is Jed Hoyer?'; print({ask}.answer.text)"
    done = script(code, "-W", "default")
    assert (done.stdout, done.stderr) == ("an executive\n", "")


def test_ending_amid_a_question_is_quiet() -> None:
    code = """
from tests.runtime.test_threads import Stuck
stuck = Stuck()
rag = PyRAG(retriever=stuck)
threading.Thread(target=ask, args=[rag], daemon=True).start()
stuck.asked.wait()
"""
    done = script(code)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_ctrl_c_cancels_the_question_and_reaches_the_caller() -> None:
    code = """
from tests.runtime.test_threads import ASKED, PASSAGES, Stuck
stuck = Stuck()
rag = PyRAG(retriever=stuck)
threading.Thread(target=lambda: (stuck.asked.wait(), print("asked", flush=True))).start()
try:
    rag.ask(ASKED)
except KeyboardInterrupt:
    print("interrupted", stuck.cancelled.is_set())
rag.close()
print(ask(PyRAG()))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == (f"interrupted True\n{ANSWER}\n", "", 0)
