"""Make a table from a folder of contracts: one row per tenant, with the contract behind each cell."""

from __future__ import annotations

import csv
import sys

from pyrag import PyRAG

TENANTS = ["Berg Mills Ltd", "Alpha Bakery", "Gamma Freight"]
COLUMNS = {
    "term": "How long does the lease of {} run?",
    "rent": "What is the monthly rent of {}?",
    "signed by": "Who signed the lease with {}?",
}
PROGRAM = '''"""Each question about each tenant, in parallel."""
final_answer = {
    tenant: {
        column: answer(question.replace("{}", tenant), retrieve(f"lease of {tenant}", topk=1))
        for column, question in columns.items()
    }
    for tenant in tenants
}
'''


def main() -> None:
    with PyRAG(index="my-index") as rag:
        trace = rag.run(PROGRAM, {"tenants": TENANTS, "columns": COLUMNS}, budget={"calls": 200})
    if trace.error:
        raise SystemExit(trace.error.message)
    sources = {citation.number: trace.passages[citation.passage].source for citation in trace.citations}
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["tenant", *COLUMNS, "from"])
    for tenant, cells in trace.value.items():
        numbers = trace.item_citations.get(tenant, ())
        writer.writerow([tenant, *cells.values(), " ".join(sources[number] for number in numbers)])


if __name__ == "__main__":
    main()
