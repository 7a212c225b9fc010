"""Birthplace of a film's director."""

director = answer(f"Who directed {film}?", retrieve(f"{film} film director"))
if is_known(director):
    birthplace = answer(f"Where was {director} born?", retrieve(f"{director} born"))
    final_answer = {"director": director, "birthplace": birthplace}
else:
    final_answer = {"director": None, "birthplace": None}
