"""BM25 over the stemmed titles and texts of passages in memory, for negatives and for measuring."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recipes.reader.layout import Text


class Bm25:
    """BM25 index of passages."""

    def __init__(self, texts: Iterable[Text]) -> None:
        import tantivy

        self.texts = {text.id: text for text in texts}
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("body", tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build())
        writer = self._index.writer(heap_size=64_000_000, num_threads=1)
        for text in self.texts.values():
            writer.add_document(tantivy.Document(id=text.id, body=f"{text.title} {text.text}"))
        writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str, count: int) -> list[Text]:
        """Return the best passages, best first.

        Args:
            query: Search words. Punctuation and letter case are ignored.
            count: Maximum number of passages. Every passage shares a word with the query.
        """
        parsed = self._index.parse_query(" ".join(re.findall(r"\w+", query.lower())), ["body"])
        hits = self._searcher.search(parsed, count).hits
        return [self.texts[self._searcher.doc(address)["id"][0]] for _, address in hits]
