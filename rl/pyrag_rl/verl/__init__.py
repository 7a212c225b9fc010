"""verl's side: settings, launch, agent loops, supervised training, export."""
