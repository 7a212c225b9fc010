"""The coach: it compares trajectories and says how a team can do better."""
