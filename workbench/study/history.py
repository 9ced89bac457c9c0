"""Runs of one study over time, each measured again and kept, so that a scheduled report can say what changed.

A folder holds, per study, the plans of every finished run and its journal::

    history/
      weekly/
        study.txt                     whose runs these are: the path of the study file, seen from history/
        journal.jsonl                 the run under way: one that was killed or failed continues from here
        20260131T040000Z.json         plans of a finished run
        20260131T040000Z.jsonl        its journal

A run takes its journal away when it is finished, so the next one measures again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path
from typing import Self

from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.records import Measurement, structure
from workbench.study.carry_out import run_study
from workbench.study.planned import Planned, asked_of, write_planned
from workbench.study.spec import Study
from workbench.testbed import Testbed

_STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class StudyHistory:
    """The runs of one study, in a folder that the first of them makes."""

    folder: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @classmethod
    def of(cls, study: Path, folder: Path) -> Self:
        """Find the runs of the study in the file `study` among those in `folder`, or begin them.

        They are in a folder of the file's name; with a number, where a study of the same name elsewhere has taken it.
        Raises WorkbenchError when nothing can be kept there.
        """
        asked = os.path.relpath(study, folder)
        names = chain([study.stem], (f"{study.stem}-{number}" for number in count(2)))
        try:
            return cls(next(folder / name for name in names if _owner(folder / name, asked) == asked))
        except OSError as error:
            raise WorkbenchError(
                f"The history in {folder} cannot be kept: {error.strerror}. Name a folder that may be written to."
            ) from error

    @property
    def journal(self) -> Journal:
        """The journal of the run under way."""
        return Journal(self.folder / "journal.jsonl")

    @property
    def runs(self) -> tuple[Path, ...]:
        """Plans of the finished runs, oldest first."""
        return tuple(sorted(self.folder.glob("*.json")))

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """Finished measurements of the run under way."""
        entries = self.journal.entries("finished")
        return tuple(structure(entry.data, Measurement, "A recorded measurement") for entry in entries)

    def run(self, study: Study, *, testbed: Testbed | None = None) -> tuple[Planned, Path | None]:
        """Carry out `study`, keep the result, and return it with the plans of the run before, None for the first.

        Raises WorkbenchError when the study cannot be carried out, or another process is running it.
        """
        with self._locked():
            before = self.runs[-1] if self.runs else None
            if before is not None:
                self._archive_journal(before)  # a run that was killed in between: else all of it would be reused
            planned = run_study(study, self.journal, testbed=testbed, asked=asked_of(study, scheduled=True))
            now = self.clock()
            with suppress(ValueError):  # a file that somebody named; else names stay in order if a clock is set
                if before is not None:
                    now = max(now, datetime.strptime(before.stem, _STAMP).replace(tzinfo=UTC) + timedelta(seconds=1))
            finished = self.folder / f"{now.strftime(_STAMP)}.json"
            write_planned(planned, finished)
            self._archive_journal(finished)
        return planned, before

    def _archive_journal(self, finished: Path) -> None:
        """Move the journal of a finished run next to its plans, if that was not done."""
        kept = finished.with_suffix(".jsonl")
        if self.journal.path.exists() and not kept.exists():
            self.journal.path.rename(kept)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Prevent a second run of the same study: a schedule may fire while the last run is still at work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise WorkbenchError(
                    f"Another run of the study in {self.folder} is under way; wait for it, or name another history."
                ) from error
            yield


def _owner(folder: Path, study: str) -> str:
    """Return the study that owns a folder of runs; claim the folder for `study` if nobody does."""
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "study.txt"
    with suppress(FileExistsError), told.open("xb") as new:
        new.write(os.fsencode(study))
    return os.fsdecode(told.read_bytes())  # as it was written: a name may have any line end
