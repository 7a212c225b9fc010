"""Settings of all tests: an example of a property may take its time, and is the same in each run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)  # `make fuzz`
settings.load_profile("fixed")
