"""Where the pages of arrays are, and arrays on chosen nodes."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

from . import _native
from ._place import Nodes, node_list

#: What stands for a page without a node.
_WITHOUT_NODE = {-1: None, -2: None, -3: None}


class Pages:
    """The node of each page of an object; ``None`` for a page that is on no node (not touched yet, or swapped out)."""

    def __init__(self, nodes: List[Optional[int]], page_size: int) -> None:
        self.nodes = nodes
        self.page_size = page_size

    @property
    def counts(self) -> Dict[Optional[int], int]:
        """Pages by node; ``None`` counts those that are on no node."""
        counts: Dict[Optional[int], int] = {}
        for node in self.nodes:
            counts[node] = counts.get(node, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: (pair[0] is None, pair[0])))

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self):
        return iter(self.nodes)

    def __repr__(self) -> str:
        parts = [f"{count} on no node" if node is None else f"{count} on node {node}" for node, count in self.counts.items()]
        return f"<nodewise.Pages: {len(self)} pages of {self.page_size} B: {', '.join(parts) or 'none'}>"


def _range_of(object: Any) -> Tuple[int, int]:
    """Address and length in bytes of what an object holds."""
    # NumPy and everything that imitates it. Strides may leave holes: the whole span is looked at.
    interface = getattr(object, "__array_interface__", None)
    if interface is not None:
        import numpy

        array = numpy.asarray(object)
        low, high = numpy.lib.array_utils.byte_bounds(array) if hasattr(numpy.lib, "array_utils") else numpy.byte_bounds(array)
        return int(low), int(high) - int(low)
    # PyTorch.
    if hasattr(object, "data_ptr") and hasattr(object, "untyped_storage"):
        if str(getattr(object, "device", "cpu")) != "cpu":
            raise ValueError(f"the tensor is on {object.device}: pages are those of the CPU's memory")
        storage = object.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
    view = memoryview(object)
    if not view.contiguous:
        raise ValueError("the memory is not contiguous")
    if view.nbytes == 0:
        return 0, 0
    return _address_of(view), view.nbytes


class _Buffer(ctypes.Structure):
    """``Py_buffer``; only its first fields are read, the rest is room."""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("rest", ctypes.c_char * 128)]


def _address_of(view: memoryview) -> int:
    """The address of a buffer, also of one that is read-only."""
    buffer = _Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
    get(view, ctypes.byref(buffer), 0)
    try:
        return int(buffer.buf or 0)
    finally:
        release(ctypes.byref(buffer))


def pages(object: Any) -> Pages:
    """The node of each page of a NumPy array, a tensor on the CPU, or anything with a buffer (``bytes``, ``mmap``).

    Nothing is touched: a page that was not written yet stays so.
    """
    address, length = _range_of(object)
    nodes = _native.locate(address, length)
    return Pages([_WITHOUT_NODE.get(node, node) for node in nodes], _native.PAGE_SIZE)


class _Memory:
    """What NumPy keeps alive for an array."""

    def __init__(self, buffer: "_native.Buffer", size: int) -> None:
        self._buffer = buffer
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (buffer.address, False)}


def empty(
    shape: "int | Tuple[int, ...]",
    dtype: Any = float,
    *,
    nodes: Optional[Nodes] = None,
    policy: Optional[str] = None,
    huge: bool = False,
    touch: bool = True,
):
    """A NumPy array whose memory has a policy of its own. Its values are arbitrary, as those of ``numpy.empty``.

    :param nodes: nodes of the memory
    :param policy: ``bind`` (the default with nodes), ``preferred``, ``preferred-many``, ``interleave``,
        ``weighted-interleave`` or ``local``
    :param huge: ask the kernel for transparent huge pages; without it pages are small
    :param touch: place all pages now; otherwise each is placed by the first thread that writes to it, under the same policy
    """
    import numpy

    memory = node_list(nodes) if nodes is not None else []
    policy = policy or ("bind" if memory else "default")
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("Python objects are allocated by Python: only numbers can be placed")
    count = int(numpy.prod(shape, dtype=object)) if shape != () else 1
    size = count * kind.itemsize
    if size == 0:
        return numpy.empty(shape, kind)
    buffer = _native.Buffer(size, policy, memory, huge, touch)
    return numpy.asarray(_Memory(buffer, size)).view(kind).reshape(shape)
