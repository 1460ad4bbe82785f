"""What an exception of Spark means for a job: its text has the names of Iceberg's classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from app.engine.model.jobs import JobState

T = TypeVar("T")
_LONGEST_MESSAGE: Final = 500
_OF_ICEBERG = re.compile(r"\borg\.apache\.iceberg\.exceptions\.(\w+)(?:: (.*))?")
_FRAME = re.compile(r"\s+at |\s+\.\.\. \d+ more")
_OPENING = re.compile(r"An error occurred while calling \w+\.\w+\.\s*:?\s*")
_GONE = re.compile(
    r"StatusCode\.(?:UNAVAILABLE|CANCELLED|DEADLINE_EXCEEDED|ABORTED)|INVALID_HANDLE\.|Answer from Java side is empty"
    r"|An error occurred while trying to connect to the Java server"
)
_NO_EXTENSIONS = re.compile(r"at or near '?CALL'?|FAILED_TO_LOAD_CATALOG|Cannot find catalog plugin class")
_MEANINGS: Final[Sequence[tuple[str, JobState]]] = (
    # The first that is found decides: what may have happened goes before what has not.
    ("CommitStateUnknownException", JobState.UNKNOWN),
    ("NotFoundException", JobState.DAMAGED),
    ("ValidationException", JobState.LOST),
    ("CommitFailedException", JobState.FAILED),
)
_REFUSALS = re.compile(
    r"\b(?:IllegalArgumentException|ParseException|AnalysisException|UnsupportedOperationException|NumberFormatException)"
    r"\b|Cannot use options"
)
_WRONG_POLICY = re.compile(r"Cannot (?:find|sort|bind|use)\b|Invalid ")
"""Of a `ValidationException`: it is about names or types, and about no other commit."""
_PYTHONS_NAME = re.compile(r"^(?:(?:Py4JJavaError|\w+Exception): |\((?:\w+\.)+\w+Exception\) )+")
"""What PySpark puts before a sentence; over Connect that is the name of the class in parentheses."""
_FILE = re.compile(r"\b(?:[Ff]ile|Location)(?: does not exist)?: (\S+)")
"""Object stores call it a location."""


@dataclass(frozen=True, slots=True)
class SparkFailure:
    """Why a statement of Spark failed."""

    state: JobState
    message: str
    is_connection_lost: bool = False
    """Whether Spark may go on working on the statement."""
    missing_file: str | None = None
    """The file that is not there, if one is named."""


def attempted(work: Callable[[], T]) -> T | SparkFailure:
    """Return what some work on Spark returns, or why it failed.

    Spark's errors share no parent with those of the libraries below it, so all of them are caught.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - see above
        return failure_of(error)


def failure_of(error: BaseException) -> SparkFailure:
    """Return what an exception of Spark, classic or Connect, means."""
    text = _text(error)
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    found = {name: said for line in lines for name, said in _OF_ICEBERG.findall(line)}
    if not found and (isinstance(error, OSError) or _is_of_py4j(error) or _GONE.search(text)):
        return SparkFailure(
            JobState.UNKNOWN, f"The connection to Spark was lost: {_sentence(lines)}", is_connection_lost=True
        )
    if _NO_EXTENSIONS.search(text):
        sentence = "Spark does not know Iceberg: it needs Iceberg's runtime and spark.sql.extensions"
        return SparkFailure(JobState.FAILED, f"{sentence} ({_sentence(lines)})")
    # Spark sends no causes over Connect: then only what the sentence itself says is there.
    names = found.keys() or set(re.findall(r"\b\w+Exception\b", "\n".join(lines)))
    for name, state in _MEANINGS:
        if name in names:
            said = found.get(name) or _sentence(lines)
            if state is JobState.LOST and _WRONG_POLICY.search(said):
                return SparkFailure(JobState.REFUSED, _shortened(said))
            file = _FILE.search(said) if state is JobState.DAMAGED else None
            return SparkFailure(state, _shortened(said), missing_file=file.group(1) if file else None)
    if _REFUSALS.search("\n".join(lines)):
        return SparkFailure(JobState.REFUSED, _sentence(lines))
    return SparkFailure(JobState.FAILED, _sentence(lines))


def _is_of_py4j(error: BaseException) -> bool:
    """Say whether an error is one of the connection to the JVM, and none that Java raised."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return "Py4JError" in kinds and "Py4JJavaError" not in kinds


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as broken:  # noqa: BLE001 - the text is asked of a JVM that may be gone
        return f"{type(error).__name__}: Answer from Java side is empty ({type(broken).__name__})"


def _sentence(lines: Sequence[str]) -> str:
    """Return the first line that says something."""
    text = _OPENING.sub("", " ".join(lines[:2]) if lines else "")
    return _shortened(_PYTHONS_NAME.sub("", text))


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_MESSAGE else f"{flat[:_LONGEST_MESSAGE]}…"
