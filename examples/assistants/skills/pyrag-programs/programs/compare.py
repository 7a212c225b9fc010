"""The older of two people."""

born_first = answer(f"When was {first} born?", retrieve(f"{first} born"))
born_second = answer(f"When was {second} born?", retrieve(f"{second} born"))
if is_known(born_first) and is_known(born_second):
    older = first if parse_date(born_first) < parse_date(born_second) else second
    final_answer = {"older": older, first: born_first, second: born_second}
else:
    final_answer = {"older": None, first: born_first, second: born_second}
