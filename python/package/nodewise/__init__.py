"""NUMA for Python: where memory is, where it should be, and what that costs.

    >>> import nodewise
    >>> nodewise.machine().nodes                    # what this machine has
    >>> with nodewise.place(near="gpu:0"):          # CPUs and memory beside a device
    ...     load_batches()
    >>> nodewise.pages(array).counts                # the node of each page of an array
    >>> nodewise.empty((1024, 1024), nodes="0-1", policy="interleave")
    >>> nodewise.tune(["./solver", "input.dat"]).best

Policies and CPUs belong to threads: what is set here holds for the calling thread, and for threads and processes
that it starts afterwards. NumPy is needed by :func:`empty` only.
"""

from ._command import CommandError, command_path
from ._machine import Machine, Picture, explain, machine, show
from ._memory import Pages, empty, pages
from ._place import Placement, place
from ._tune import Study, tune

__all__ = [
    "CommandError",
    "Machine",
    "Pages",
    "Picture",
    "Placement",
    "Study",
    "command_path",
    "empty",
    "explain",
    "machine",
    "pages",
    "place",
    "show",
    "tune",
]
