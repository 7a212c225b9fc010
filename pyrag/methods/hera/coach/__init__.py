"""Coach, which compares trajectories and advises how the team can do better."""
