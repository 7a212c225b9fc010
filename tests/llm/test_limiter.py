"""Concurrency at an endpoint: how the window moves, whose turn it is, and real servers that refuse."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from pyrag.errors import RetryableServiceError
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.limiter import Limiter, limiter_of, question_scope
from pyrag.llm.protocol import Message

ASKED = (Message("user", "?"),)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_fresh_limiter_lets_everyone_in() -> None:
    limiter = Limiter(64)
    async with asyncio.timeout(120):
        tickets = [await limiter.enter() for _ in range(64)]
    late = asyncio.create_task(limiter.enter())
    await settle()
    assert limiter.in_flight == 64
    assert limiter.waiting == 1
    limiter.leave(tickets[0])
    await late
    assert limiter.in_flight == 64


async def test_quick_refusals_leave_the_window_at_what_the_server_holds() -> None:
    limiter = Limiter(256)
    tickets = [await limiter.enter() for _ in range(100)]
    for ticket in tickets[10:]:
        limiter.leave(ticket, "busy")
    assert int(limiter.window) == 10


async def test_one_stall_shrinks_the_window_once() -> None:
    limiter = Limiter(100)
    tickets = [await limiter.enter() for _ in range(100)]
    for ticket in tickets:
        limiter.leave(ticket, "timeout")
    assert limiter.window == pytest.approx(80)
    limiter.leave(await limiter.enter(), "timeout")
    assert limiter.window == pytest.approx(64)


async def test_only_a_full_window_grows() -> None:
    limiter = Limiter(100)
    limiter.leave(await limiter.enter(), "busy")
    assert limiter.window == 1
    for wanted in (2, 3):
        for ticket in [await limiter.enter() for _ in range(int(limiter.window))]:
            limiter.leave(ticket)
        assert limiter.window <= wanted
    before = limiter.window
    limiter = Limiter(100)
    limiter.window = 50.0
    limiter.leave(await limiter.enter())
    assert limiter.window == 50
    assert before > 1


async def test_faults_that_are_no_overload_change_nothing() -> None:
    limiter = Limiter(10)
    for _ in range(20):
        limiter.leave(await limiter.enter(), "other")
    assert limiter.window == 10


async def test_an_unreachable_server_keeps_a_window_of_eight() -> None:
    limiter = Limiter(100)
    for _ in range(50):
        limiter.leave(await limiter.enter(), "unreachable")
    assert limiter.window == 8


async def test_after_retry_after_the_window_doubles_a_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    limiter = Limiter(100)
    now = [loop.time()]
    tickets = [await limiter.enter() for _ in range(20)]
    limiter.leave(tickets.pop(), "busy", 0.5)
    callers = [asyncio.create_task(limiter.enter()) for _ in range(40)]
    await settle()
    assert limiter.waiting == 40
    for ticket in tickets:
        limiter.leave(ticket, "other")
    await settle()
    assert limiter.in_flight == 0  # the hold keeps everyone out, however much room there is
    waves = []
    done: set[asyncio.Task[int]] = set()
    while len(done) < 40:
        new, _ = await asyncio.wait(set(callers) - done, return_when=asyncio.FIRST_COMPLETED)
        await settle()
        new = {caller for caller in callers if caller.done()} - done
        waves.append(len(new))
        done |= new
        for caller in new:
            limiter.leave(caller.result())
    assert loop.time() >= now[0] + 0.5
    assert waves[:5] == [1, 2, 4, 8, 16]


async def test_questions_take_turns() -> None:
    limiter = Limiter(1)
    first = await limiter.enter()
    order: list[str] = []

    async def call(name: str) -> None:
        ticket = await limiter.enter()
        order.append(name)
        limiter.leave(ticket)

    async def question(name: str, calls: int) -> None:
        with question_scope():
            await asyncio.gather(*(call(name) for _ in range(calls)))

    greedy = asyncio.create_task(question("greedy", 50))
    await settle()
    modest = [asyncio.create_task(question(name, 2)) for name in ("b", "c")]
    await settle()
    limiter.leave(first)
    await asyncio.gather(greedy, *modest)
    assert order[:6] == ["greedy", "b", "c", "greedy", "b", "c"]
    assert len(order) == 54


async def test_a_refused_call_goes_first_among_its_questions_calls() -> None:
    limiter = Limiter(1)
    held = await limiter.enter()
    plain = asyncio.create_task(limiter.enter())
    await settle()
    again = asyncio.create_task(limiter.enter(again=True))
    await settle()
    limiter.leave(held)
    await settle()
    assert again.done()
    assert not plain.done()
    plain.cancel()


async def test_cancelled_callers_leave_at_once() -> None:
    limiter = Limiter(1)
    held = await limiter.enter()
    waiting = [asyncio.create_task(limiter.enter()) for _ in range(3)]
    await settle()
    waiting[0].cancel()
    await settle()
    assert limiter.waiting == 2
    limiter.leave(held)
    waiting[1].cancel()  # its turn came in this very moment: it goes to the next
    await settle()
    assert waiting[1].cancelled()
    assert waiting[2].done()
    assert limiter.in_flight == 1
    assert limiter.waiting == 0


async def test_clients_of_an_endpoint_share_a_limiter() -> None:
    url = "http://127.0.0.1:9/v1"
    one, two = OpenAIChat("m", url), OpenAIChat("m", url + "/", max_in_flight=3)
    other = OpenAIChat("n", url)
    limiters = [chat._service.gate.limiter for chat in (one, two, other)]  # type: ignore[union-attr]
    assert limiters[0] is limiters[1]
    assert limiters[0] is not limiters[2]
    assert limiters[0].maximum == 3
    del one, two, other, limiters
    gc.collect()
    assert limiter_of(url, "m").maximum == 256


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Busy:
    """Serves `slots` calls at once and refuses the others."""

    def __init__(self, slots: int, status: int = 429, headers: dict[str, str] | None = None) -> None:
        self.slots, self.status, self.headers = slots, status, headers or {}
        self.in_flight = 0
        self.counts: Counter[str] = Counter()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        if self.in_flight >= self.slots:
            self.counts["refused"] += 1
            return web.json_response({"error": {"message": "busy"}}, status=self.status, headers=self.headers)
        self.in_flight += 1
        try:
            await asyncio.sleep(0.01)
            self.counts["served"] += 1
            return web.json_response({"choices": [{"message": {"content": "hello"}}]})
        finally:
            self.in_flight -= 1


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    runners = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}/v1"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_with_four_slots_answers_a_hundred_calls(serve, status: int) -> None:
    busy = Busy(4, status)
    chat = OpenAIChat("m", await serve(busy.serve))
    replies = await asyncio.gather(*(chat.complete(ASKED) for _ in range(100)))
    await chat.aclose()
    assert [reply.text for reply in replies] == ["hello"] * 100
    assert busy.counts["served"] == 100  # nothing is asked twice after it was answered
    assert busy.counts["refused"] < 200


async def test_a_server_that_is_always_busy_ends_in_an_error(serve) -> None:
    busy = Busy(0)
    chat = OpenAIChat("m", await serve(busy.serve))
    with pytest.raises(RetryableServiceError, match="busy"):
        await chat.complete(ASKED)
    await chat.aclose()
    assert busy.counts["refused"] == 7


async def test_a_spent_quota_is_not_asked_again(serve) -> None:
    asked = []

    async def broke(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return web.json_response({"error": {"message": "no money", "code": "insufficient_quota"}}, status=429)

    chat = OpenAIChat("m", await serve(broke))
    with pytest.raises(Exception, match="no money"):
        await chat.complete(ASKED)
    await chat.aclose()
    assert len(asked) == 1


async def test_cancelled_calls_give_their_place_back(serve) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        if (await request.json())["messages"][0]["content"] == "hang":
            await asyncio.sleep(30)
        return web.json_response({"choices": [{"message": {"content": "hello"}}]})

    chat = OpenAIChat("m", await serve(hang), max_in_flight=1)
    stuck = asyncio.create_task(chat.complete((Message("user", "hang"),)))
    await asyncio.sleep(0.05)
    queued = asyncio.create_task(chat.complete(ASKED))
    await settle()
    stuck.cancel()
    async with asyncio.timeout(120):
        assert (await queued).text == "hello"
    await chat.aclose()
