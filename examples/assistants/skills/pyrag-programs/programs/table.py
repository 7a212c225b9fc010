"""Table of birth dates and years."""

rows = []
for person in people:
    born = answer(f"When was {person} born?", retrieve(f"{person} born"))
    rows.append({"person": person, "born": born, "year": parse_year(born) if is_known(born) else None})
final_answer = rows
