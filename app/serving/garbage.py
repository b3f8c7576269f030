"""The garbage collector, in a process that stays."""

import gc


def spare_what_stays() -> None:
    """Keep the collector from looking through what the start has made, modules above all.

    A full collection goes through all there is, finds nothing there, and meanwhile nobody is answered: a
    quarter of a second each time.
    """
    gc.freeze()
