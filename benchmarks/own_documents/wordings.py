"""Wordings of questions by kind, for calibration and for evaluation. No wording is in both sets."""

# ruff: noqa: E501 - wordings are easier to compare on one line

from __future__ import annotations

CALIBRATION: dict[str, tuple[str, ...]] = {
    "fact number": ("How many {units} does {x} {verb}?", "What number of {units} does {x} {verb}?"),
    "fact person": ("Who is {x} {by} by?", "By whom is {x} {by}?"),
    "fact size": ("How {adjective} is {longer}?", "What is the {measure} of {longer}?"),
    "state": ("Is {x} {done}?", "Has {x} been {done}?"),
    "choice": ("Which {noun} {verbs} more {units}, {x} or {y}?", "Which {verbs} more {units}, {y} or {x}?"),
    "sum": ("How many {units} do {x} and {y} {verb} together?", "How many {units} do {y} and {x} {verb} in total?",
            "What is the sum of the {units} of {x} and {y}?"),
    "difference": ("How many more {units} does {x} {verb} than {y}?", "By how many {units} does {x} exceed {y}?",
                   "How many fewer {units} does {y} {verb} than {x}?"),
    "size difference": ("How much {comparative} is {longer} than {shorter}?",
                        "What is the difference in {measure} between {longer} and {shorter}?"),
    "unit": ("How many {asked_unit} {adjective} is {longer}?", "What is the {measure} of {longer} in {asked_unit}?"),
    "count": ("How many {plural} of {town} {verb} more than {limit} {units}?",
              "How many of the {plural} in {town} {verb} over {limit} {units}?"),
    "count of person": ("How many {plural} in {town} are {by} by {person}?",
                        "How many of the {town} {plural} does {person} look after as {role}?"),
    "total": ("How many {units} do all {plural} of {town} {verb} together?",
              "What is the total number of {units} of the {plural} of {town}?"),
    "average": ("How many {units} does a {noun} of {town} {verb} on average?",
                "What is the average number of {units} of the {plural} of {town}?"),
    "highest": ("Which {noun} of {town} {verbs} the most {units}?", "Which of the {plural} in {town} has the highest number of {units}?"),
    "neither": ("Which {plural} of {town} are {by} by neither {person} nor {other}?",
                "Which {noun} of {town} is {by} neither by {person} nor by {other}?"),
    "all": ("Are all {plural} of {town} {done}?", "Is every {noun} of {town} {done}?"),
    "every name": ("Which {plural} of {town} are {done}?", "Name all {plural} of {town} that are {done}."),
    "missing": ("What is the {missing} of {x}?", "Which {missing} does {y} have?"),
    "absent": ("How many {units} does {absent} {verb}?", "Who is {absent} {by} by?"),
}  # fmt: skip

REPORT: dict[str, tuple[str, ...]] = {
    "fact number": ("What is the number of {units} that {x} {verbs}?", "{x} {verbs} how many {units}?"),
    "fact person": ("Who is the {role} of {x}?", "Which person is the {role} of {x}?"),
    "fact size": ("What {measure} does {longer} have?", "How {adjective} is {longer} according to our notes?"),
    "state": ("Was {x} {done}?", "Is it true that {x} is {done}?"),
    "choice": ("Does {x} or {y} {verb} more {units}?", "What {verbs} more {units}: {y} or {x}?"),
    "sum": ("How many {units} can {x} and {y} {verb} combined?", "Taken together, how many {units} do {x} and {y} {verb}?",
            "{x} and {y}: how many {units} do the two {verb} altogether?"),
    "difference": ("How many {units} more than {y} does {x} {verb}?", "{y} {verbs} how many {units} less than {x}?",
                   "What is the difference between the numbers of {units} of {x} and {y}?"),
    "size difference": ("By how much is {longer} {comparative} than {shorter}?",
                        "How great is the difference between {longer} and {shorter} in {measure}?"),
    "unit": ("In {asked_unit}, how {adjective} is {longer}?", "Give the {measure} of {longer} in {asked_unit}."),
    "count": ("What is the number of {plural} of {town} with more than {limit} {units}?",
              "In {town}, how many {plural} {verb} more than {limit} {units}?"),
    "count of person": ("For how many {plural} in {town} is {person} the {role}?", "How many {town} {plural} does {person} have as {role}?"),
    "total": ("How many {units} do the {plural} of {town} {verb} in all?", "Adding up all {plural} of {town}, how many {units} are there?"),
    "average": ("On average, how many {units} do the {plural} of {town} {verb}?", "What is the mean number of {units} per {noun} in {town}?"),
    "highest": ("Which {noun} in {town} comes first by number of {units}?", "What is the {noun} of {town} with the largest number of {units}?"),
    "neither": ("Neither {person} nor {other} is the {role} of which {plural} in {town}?",
                "Of the {plural} in {town}, which have neither {person} nor {other} as {role}?"),
    "all": ("Have all the {plural} in {town} been {done}?", "Is each of the {plural} of {town} {done}?"),
    "every name": ("What {plural} in {town} have been {done}?", "List the {plural} of {town} that are {done}."),
    "missing": ("Do you know the {missing} of {x}?", "{y} has which {missing}?"),
    "absent": ("What is the number of {units} that {absent} {verbs}?", "Who is the {role} of {absent}?"),
}  # fmt: skip

WORDINGS = {"calibration": CALIBRATION, "report": REPORT}
