"""Placements: CPUs and a memory policy for a block of code, or for a worker process."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, List, Optional, Tuple, TypeVar, Union

from . import _native

Nodes = Union[int, str, Iterable[int]]
_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Policies that take one node.
_OF_ONE = ("preferred",)
#: Policies that take none.
_OF_NONE = ("default", "local")


def node_list(nodes: Nodes) -> List[int]:
    """Nodes as numbers: ``1``, ``"0-1"``, ``"all"``, ``[0, 2]``."""
    if isinstance(nodes, bool):
        raise TypeError(f"{nodes!r} is not a set of nodes")
    if isinstance(nodes, int):
        wanted = [nodes]
    elif isinstance(nodes, str):
        wanted = _native.allowed_nodes() if nodes == "all" else _native.parse_nodes(nodes)
    else:
        wanted = sorted({int(node) for node in nodes})
    there = [node for node, _ in _native.nodes()]
    for node in wanted:
        if node not in there:
            raise ValueError(f"node {node} does not exist: this machine has nodes {', '.join(map(str, there))}")
    if not wanted:
        raise ValueError("no nodes: expected at least one")
    return wanted


class Placement:
    """CPUs and a memory policy, as a context, as a decorator, and for worker processes.

    A placement can be pickled: ``Pool(initializer=place(nodes=1).apply)`` places every worker.
    """

    def __init__(self, cpus: Optional[List[int]], policy: Optional[str], nodes: List[int]) -> None:
        self.cpus = cpus
        self.policy = policy
        self.nodes = nodes
        self._before: List[Tuple[List[int], Tuple[str, List[int]]]] = []

    def apply(self, *_: Any) -> None:
        """Places the calling thread, and what it starts from now on, for good."""
        if self.cpus is not None:
            _native.set_cpus(self.cpus)
        if self.policy is not None:
            _native.set_thread_policy(self.policy, self.nodes)

    def __enter__(self) -> "Placement":
        before = (_native.cpus(), _native.thread_policy())
        try:
            self.apply()
        except BaseException:
            _restore(before)
            raise
        self._before.append(before)
        return self

    def __exit__(self, *_: Any) -> None:
        _restore(self._before.pop())

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def placed(*arguments: Any, **named: Any) -> Any:
            # A copy: one placement can be in use by several threads.
            with Placement(self.cpus, self.policy, self.nodes):
                return function(*arguments, **named)

        return placed  # type: ignore[return-value]

    def __getstate__(self) -> Tuple[Optional[List[int]], Optional[str], List[int]]:
        return (self.cpus, self.policy, self.nodes)

    def __setstate__(self, state: Tuple[Optional[List[int]], Optional[str], List[int]]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __repr__(self) -> str:
        parts = []
        if self.cpus is not None:
            parts.append(f"cpus={self.cpus}")
        if self.policy is not None:
            parts.append(f"{self.policy}:{','.join(map(str, self.nodes))}" if self.nodes else self.policy)
        return f"<nodewise.Placement {' '.join(parts)}>"


def _restore(before: Tuple[List[int], Tuple[str, List[int]]]) -> None:
    cpus, (policy, nodes) = before
    _native.set_cpus(cpus)
    _native.set_thread_policy(policy, nodes)


def place(
    *,
    near: Optional[str] = None,
    nodes: Optional[Nodes] = None,
    cpus: Optional[Nodes] = None,
    policy: Optional[str] = None,
    strict: bool = False,
) -> Placement:
    """A placement of the calling thread.

    :param near: a device, as ``run --near`` takes it (``"gpu:0"``, ``"net:eth0"``): the CPUs of its node, and memory
        from there first; with ``strict`` from there only
    :param nodes: nodes of the memory
    :param cpus: nodes of the CPUs; without it the CPUs of ``nodes`` for ``bind``, else all
    :param policy: ``bind`` (the default with one node or several), ``preferred``, ``preferred-many``, ``interleave``,
        ``weighted-interleave``, ``local`` or ``default``
    """
    if near is not None:
        if nodes is not None or cpus is not None or policy is not None:
            raise ValueError("near= gives CPUs and policy: leave out nodes=, cpus= and policy=")
        node = _native.node_of(near)
        return Placement(_cpus_of([node]), "bind" if strict else "preferred", [node])
    if strict:
        raise ValueError("strict= belongs to near=")
    memory = node_list(nodes) if nodes is not None else []
    if policy is None:
        policy = "bind" if memory else None
    elif policy in _OF_NONE and memory:
        raise ValueError(f"policy {policy!r} takes no nodes")
    elif policy not in _OF_NONE and not memory:
        raise ValueError(f"policy {policy!r} needs nodes=")
    elif policy in _OF_ONE and len(memory) > 1:
        raise ValueError(f"policy {policy!r} takes one node: preferred-many takes several")
    if cpus is not None:
        return Placement(_cpus_of(node_list(cpus)), policy, memory)
    if policy == "bind":
        # Nodes of memory only have no CPUs: the thread stays where it is.
        return Placement(_cpus_of(memory) or None, policy, memory)
    return Placement(None, policy, memory)


def _cpus_of(nodes: List[int]) -> List[int]:
    allowed = set(_native.cpus())
    return sorted(cpu for node, cpus in _native.nodes() if node in nodes for cpu in cpus if cpu in allowed)
