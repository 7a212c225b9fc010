"""A tool over a database of yours, and a program that joins it with documents."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from pyrag import PyRAG
from pyrag.extend import ToolError, tool

DATABASE = "shop.db"
PROGRAM = '''"""Customers with their orders and their birth years."""
final_answer = [
    {"customer": name, "spent": spent(name), "born": answer(f"When was {name} born?", retrieve(name))}
    for name in customers
]
'''


@tool(timeout=5)
def spent(customer: str) -> float:
    """Return the sum of a customer's orders."""
    with closing(sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)) as shop:
        row = shop.execute("SELECT sum(amount) FROM orders WHERE customer = ?", (customer,)).fetchone()
    if row[0] is None:
        raise ToolError(f"no orders of {customer!r}: use a name of the table orders")
    return float(row[0])


def fill() -> None:
    """Make a small database to try with."""
    with closing(sqlite3.connect(DATABASE)) as shop:
        shop.executescript("DROP TABLE IF EXISTS orders; CREATE TABLE orders (customer TEXT, amount REAL);")
        rows = [("Jed Hoyer", 12.5), ("Jed Hoyer", 30.0), ("John William Henry II", 8.0)]
        shop.executemany("INSERT INTO orders VALUES (?, ?)", rows)
        shop.commit()


if __name__ == "__main__":
    fill()
    with PyRAG(tools=[spent]) as rag:
        trace = rag.run(PROGRAM, {"customers": ["Jed Hoyer", "John William Henry II"]})
    if trace.error:
        raise SystemExit(trace.error.message)
    for row in trace.value:
        print(f"{row['customer']}: {row['spent']:.2f}, born {row['born']}")
