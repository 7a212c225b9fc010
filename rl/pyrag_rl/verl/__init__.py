"""Training with verl: settings, launch, agent loops, supervised training, export."""
