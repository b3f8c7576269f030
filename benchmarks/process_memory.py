"""What a process weighs, in MB."""

from pathlib import Path


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(each for child in children for each in family(int(child)))]


def resident(pid: int) -> float:
    """Resident memory; 0 for a process that has ended."""
    return _megabytes(Path(f"/proc/{pid}/status"), "VmRSS:")


def proportional(pid: int) -> float:
    """As resident, but of what is shared with other processes a part only (PSS)."""
    return _megabytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def _megabytes(path: Path, field: str) -> float:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int((text.partition(field)[2].split() or ["0"])[0]) / 1024
