from pyrag import Passage, PyRAG
from pyrag.testing import InMemoryRetriever

PASSAGES = [
    Passage("1", "Alpha", "Alpha lies on a river below the mill of Alpha."),
    Passage("2", "The mill", "Ada Berg founded the mill."),
]


def test_an_unknown_answer_makes_it_read_more() -> None:
    with PyRAG(method="widen", retriever=InMemoryRetriever(PASSAGES)) as rag:
        trace = rag.ask("Who founded the mill of Alpha?")
    assert [step.topk for step in trace.steps if step.primitive == "retrieve"] == [1, 2]
    assert trace.answer.text == "Ada Berg"
