"""Thresholds with a stated error bound: pure statistics, and what they are fitted to."""
