"""The first wall: which programs compile, and the guards that hold while they run."""
