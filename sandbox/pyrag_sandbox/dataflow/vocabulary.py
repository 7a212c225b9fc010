"""Vocabulary of the dataflow analysis: properties of builtins, modules and methods, by name.

Methods are classified by name only, since values are plain (no classes with a body).
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Builtins whose result cannot be mutated, hence shares nothing with the arguments.
ATOMIC = _words("""
    abs all any ascii bin bool bytes callable chr complex divmod float format hash hex int isinstance len oct
    ord pow range repr round str sum
""")

# Builtins that take an iterator as an argument and do not keep it.
COLLECTING = _words("""
    Counter OrderedDict all any defaultdict dict frozenset list max min set sorted sum tuple
""")

# Builtins that consume the whole iterator, whatever the elements are.
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

# Arguments that a function or method may call: positions, and names. Known functions never call any other argument
# (`tests/sandbox/test_callbacks.py` tries every callable that programs can use).
CALLED: dict[str, tuple[tuple[int, ...], frozenset[str]]] = {
    "accumulate": ((1,), _words("func")),
    "defaultdict": ((0,), frozenset()),
    "dropwhile": ((0,), frozenset()),
    "dumps": ((), _words("default")),
    "filter": ((0,), frozenset()),
    "filterfalse": ((0,), frozenset()),
    "groupby": ((1,), _words("key")),
    "iter": ((0,), frozenset()),  # of two arguments
    "loads": ((), _words("cls object_hook object_pairs_hook parse_constant parse_float parse_int")),
    "map": ((0,), frozenset()),
    "max": ((), _words("key")),
    "min": ((), _words("key")),
    "sort": ((), _words("key")),
    "sorted": ((), _words("key")),
    "starmap": ((0,), frozenset()),
    "sub": ((1,), _words("repl")),
    "subn": ((1,), _words("repl")),
    "takewhile": ((0,), frozenset()),
}

# Functions that consume the iterators among their arguments, or return iterators over them: of all arguments
# (TAKING_ALL), or of the first. Any other function may store an iterator, or return it.
TAKING_ALL = _words("""
    chain compress defaultdict dropwhile filter filterfalse map print product starmap takewhile zip zip_longest
""")
TAKING_FIRST = _words("""
    Counter OrderedDict accumulate all any batched combinations combinations_with_replacement cycle deque dict
    enumerate fmean frozenset from_iterable fsum geometric_mean groupby harmonic_mean islice iter list max mean
    median median_grouped median_high median_low min mode multimode next pairwise permutations prod pstdev
    pvariance quantiles set sorted stdev sum tuple variance
""")

# Modules whose functions are pure, all of them or these (or in LAZY).
MODULES = _words("""
    collections datetime itertools json math re statistics
""")
PURE_MODULES = _words("datetime math statistics")
MODULE_FUNCTIONS = _words("""
    collections.ChainMap collections.Counter collections.OrderedDict collections.defaultdict collections.deque
    collections.namedtuple json.JSONDecodeError json.dumps json.loads re.compile re.escape re.findall re.finditer
    re.fullmatch re.match re.search re.split re.sub re.subn
""")

# Factories that a `defaultdict` may call for a missing key without a visible effect.
FACTORIES = _words("bool bytes complex dict float frozenset int list set str tuple")
FACTORIES_IMPORTED = _words("collections.Counter collections.OrderedDict collections.deque")

# Methods that read items of an argument, which changes a `defaultdict`.
READING_METHODS = _words("format translate")
EXCEPTIONS = _words("""
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NameError
    NotImplementedError OverflowError RuntimeError StopIteration TypeError UnicodeError ValueError
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

# ... or something that shares mutable objects with the object.
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
