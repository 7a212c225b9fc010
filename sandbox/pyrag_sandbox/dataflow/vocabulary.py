"""The vocabulary of the dataflow analysis: what is known about builtins, modules and methods, by name.

Methods are judged by their name alone, whatever they are called on: values are plain (no classes with a body).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Builtins whose result cannot be mutated, hence shares nothing with the arguments.
ATOMIC = _words("""
    abs all any ascii bin bool bytes callable chr complex divmod float format hash hex int isinstance len oct
    ord pow range repr round str sum
""")

# Builtins that take an iterator as an argument and keep none of it.
COLLECTING = _words("""
    Counter OrderedDict all any defaultdict dict frozenset list max min set sorted sum tuple
""")

# ... all of it, whatever the elements are.
FULLY_CONSUMING = _words("""
    Counter dict frozenset list max min set sorted sum tuple
""")

# Builtins whose result is a new container.
FRESH = _words("""
    Counter OrderedDict dict list set sorted
""")

# Functions whose result is consumed by reading it.
LAZY = _words("""
    accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile elements
    enumerate filter filterfalse finditer from_iterable groupby islice iter map pairwise permutations product
    repeat reversed starmap takewhile tee zip zip_longest
""")

# Functions that call their first, or second, argument.
CALLBACK_FIRST = _words("""
    dropwhile filter filterfalse map reduce starmap takewhile
""")
CALLBACK_LATER = _words("""
    accumulate groupby sub subn
""")

# Modules whose functions are pure (or in LAZY).
MODULES = _words("""
    collections datetime itertools json math re statistics
""")
EXCEPTIONS = _words("""
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NameError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError UnicodeError UnknownAnswerError ValueError
    ZeroDivisionError
""")
PURE_BUILTINS = ATOMIC | COLLECTING | EXCEPTIONS | {"slice", "print"}

# Methods that change nothing and return strings, numbers or new containers of those ...
STRING_METHODS = _words("""
    bit_length capitalize casefold center count decode encode end endswith expandtabs find format index
    is_integer isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isoformat isoweekday isspace
    istitle isupper join ljust lower lstrip removeprefix removesuffix replace rfind rindex rjust rsplit rstrip
    span split splitlines start startswith strftime strip swapcase timestamp title toordinal total total_seconds
    translate upper weekday zfill
""")

# ... or something that shares with the object.
SHARING_METHODS = _words("""
    copy date difference fromisoformat fromkeys fromtimestamp get group groupdict groups intersection isdisjoint
    isocalendar issubset issuperset items keys most_common partition rpartition strptime symmetric_difference
    time today union values
""")

# Methods that use up an iterator at once.
CONSUMING_METHODS = _words("""
    difference difference_update extend fromkeys intersection intersection_update isdisjoint issubset issuperset
    join symmetric_difference symmetric_difference_update union update
""")
MUTATING_METHODS = _words("""
    add append appendleft clear difference_update discard extend extendleft insert intersection_update
    move_to_end pop popitem popleft remove reverse setdefault sort subtract symmetric_difference_update update
""")

# Methods whose arguments become keys, hence are immutable, or are not kept: no sharing arises.
KEYED_METHODS = _words("""
    add clear discard intersection_update pop popitem remove reverse sort
""")

METHODS = STRING_METHODS | SHARING_METHODS | CONSUMING_METHODS | MUTATING_METHODS
