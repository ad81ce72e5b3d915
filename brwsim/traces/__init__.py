"""Real model output: readers of log-probabilities, entropy bounds from the top k, and the profile."""
