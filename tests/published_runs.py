"""StreamBed's published runs of q1 and q2, where they are next to the repository; not part of it."""

from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "published"
SMALL_RUNS = "streambed_small_runs_q1_q2.csv"
VALIDATION = "streambed_validation_q1_q2.csv"

COLUMNS = {"memory_mb_per_taskmanager": "memory_mb", "operator_slots": "slots"}

ABSENT = "published runs are not next to the repository"
"""Why a test is skipped that may be, in CI too."""


def needed(file="."):
    """Mark tests that read a published file."""
    return pytest.mark.skipif(not (FOLDER / file).exists(), reason=f"{ABSENT}: {file}")


def small_runs(query, folder=FOLDER):
    """Small runs of `query` in the order of the file; reads that file only."""
    runs = pd.read_csv(Path(folder) / SMALL_RUNS).rename(columns=COLUMNS)
    return runs[runs["query"] == query].reset_index(drop=True)


def explored(query, folder=FOLDER):
    """Runs of the Resource Explorer, in its order."""
    runs = small_runs(query, folder)
    return runs[runs.search_order.notna()].sort_values("search_order").reset_index(drop=True)


def columns(runs):
    """X and y of `runs`."""
    return runs[["memory_mb", "slots"]].to_numpy(float), runs.observed_rate_ev_s.to_numpy(float)


def saturated(query, folder=FOLDER):
    """Measured capacity at scale: X, and the larger of the readings at 120 and 150 % of the request."""
    runs = pd.read_csv(Path(folder) / VALIDATION).rename(columns=COLUMNS)
    runs = runs[runs["query"] == query]
    request = runs.groupby("memory_mb").offered_rate_ev_s.transform("min")
    over = runs[runs.offered_rate_ev_s > 1.1 * request].groupby(["memory_mb", "slots"]).achieved_rate_ev_s.max()
    return over.index.to_frame().to_numpy(float), over.to_numpy(float)
