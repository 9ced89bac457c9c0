"""StreamBed's published runs of q1 and q2, where they are next to the repository; and Table III's models."""

import math
from pathlib import Path

import pandas as pd
import pytest

SHARED = next(one for one in Path(__file__).resolve().parents if (one / "shared").is_dir() or not one.name) / "shared"
FOLDER, CASES = SHARED / "published", SHARED / "cases"
SMALL_RUNS = "streambed_small_runs_q1_q2.csv"
VALIDATION = "streambed_validation_q1_q2.csv"

COLUMNS = {"memory_mb_per_taskmanager": "memory_mb", "operator_slots": "slots"}

# Table III's coefficients with more than its two digits: refits of the authors' rows (q1, q2), values in the range of
# truncation that give Table IV's slots (q5, q8, q11).
REFITTED = {
    "q1": (10.1336, 990_145, -799_536),
    "q2": (7.50006, 3_072_579, -2_710_731),
    "q5": (-7.65e3, 5.79e5, -1.209e6),
    "q8": (2.65e3, 1.49e6, -3.91e6),
    "q11": (4.15, 39_257, -2.15e5),
}

ABSENT = "published runs are not next to the repository"
"""Why a test is skipped that may be, in CI too."""


def needed(file="."):
    """Mark tests that read a published file."""
    return pytest.mark.skipif(not (FOLDER / file).exists(), reason=f"{ABSENT}: {file}")


cases_needed = pytest.mark.skipif(not CASES.is_dir(), reason=f"{ABSENT}: cases")
"""Mark tests that read what people published of their streaming jobs."""


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


def published_model(query, memory_mb, slots):
    """Capacity by Table III's model, memory per slot."""
    a, b, c = REFITTED[query]
    form = {"q5": math.log1p, "q8": math.sqrt}.get(query, float)
    return a * form(16 * memory_mb) + b * form(slots) + c
