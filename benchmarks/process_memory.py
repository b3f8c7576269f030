"""Memory of processes, in MB."""

from pathlib import Path


def family(pid: int) -> list[int]:
    """Return the ids of a process and of its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(each for child in children for each in family(int(child)))]


def resident(pid: int) -> float:
    """Return the resident memory of a process; 0 if it has ended."""
    return _megabytes(Path(f"/proc/{pid}/status"), "VmRSS:")


def proportional(pid: int) -> float:
    """Return the proportional set size (PSS) of a process: memory shared by n processes counts as 1/n."""
    return _megabytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _megabytes(path: Path, field: str) -> float:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int((text.partition(field)[2].split() or ["0"])[0]) / 1024
