"""First wall: which programs compile, and the guards that apply while they run."""
