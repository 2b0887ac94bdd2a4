"""The module on a real kernel: on this machine, and in a guest with four nodes (``cargo xtask wheel --check``)."""

import mmap
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import unittest

import nodewise
from nodewise import _native

NODES = [node for node, _ in _native.nodes()]
PAGE = _native.PAGE_SIZE

try:
    import numpy
except ImportError:
    numpy = None


def policy():
    return _native.thread_policy()


def placed():
    """What a worker has."""
    return _native.thread_policy(), _native.cpus()


def work():
    """A function to tune."""
    sum(range(20000))


class Machines(unittest.TestCase):
    def test_this_machine_has_the_nodes_of_the_kernel(self):
        self.assertEqual(nodewise.machine().node_ids, NODES)

    def test_another_machine_is_read_and_drawn(self):
        machine = nodewise.machine("2x(2c 1G); dist=21")
        self.assertEqual(machine.distances, [[10, 21], [21, 10]])
        self.assertEqual(machine["schema"], "nodewise.machine/1")
        picture = machine.show()
        self.assertIn("<svg", picture._repr_svg_())
        self.assertIn("2 nodes", repr(picture))

    def test_what_is_wrong_is_said_in_the_words_of_the_command(self):
        with self.assertRaisesRegex(nodewise.CommandError, "machine"):
            nodewise.machine("2x(nonsense")

    def test_a_prediction_begins_with_the_preferred_node(self):
        steps = nodewise.explain("preferred:1", machine="2x(2c 1G); dist=21")["steps"]
        self.assertEqual(steps[0]["shares"][0]["node"], 1)


class Placements(unittest.TestCase):
    def test_a_block_has_its_policy_and_gives_it_back(self):
        before = placed()
        for node in NODES:
            with nodewise.place(nodes=node):
                self.assertEqual(policy(), ("bind", [node]))
            self.assertEqual(placed(), before)

    def test_blocks_can_be_nested_and_used_again(self):
        outer = nodewise.place(nodes=NODES[0], policy="preferred")
        with outer:
            with nodewise.place(policy="local"):
                self.assertEqual(policy(), ("local", []))
            with outer:
                self.assertEqual(policy(), ("preferred", [NODES[0]]))
            self.assertEqual(policy(), ("preferred", [NODES[0]]))

    def test_an_error_in_the_block_gives_it_back_too(self):
        before = placed()
        with self.assertRaises(KeyError), nodewise.place(nodes=NODES[-1]):
            raise KeyError
        self.assertEqual(placed(), before)

    def test_cpus_are_those_of_the_node(self):
        for node, cpus in _native.nodes():
            with nodewise.place(nodes=node):
                self.assertEqual(_native.cpus(), cpus if cpus else sorted(os.sched_getaffinity(0)))

    def test_a_function_is_placed_and_other_threads_are_not(self):
        seen = []

        @nodewise.place(nodes=NODES[0])
        def inner():
            thread = threading.Thread(target=lambda: seen.append(policy()))
            thread.start()
            thread.join()
            return policy()

        before = policy()
        self.assertEqual(inner(), ("bind", [NODES[0]]))
        # A thread inherits the policy of the thread that starts it.
        self.assertEqual(seen, [("bind", [NODES[0]])])
        self.assertEqual(policy(), before)

    def test_workers_are_placed(self):
        place = nodewise.place(nodes=NODES[-1])
        self.assertEqual(pickle.loads(pickle.dumps(place)).nodes, [NODES[-1]])
        with multiprocessing.get_context("spawn").Pool(1, initializer=place.apply) as pool:
            (word, nodes), _ = pool.apply(placed)
        self.assertEqual((word, nodes), ("bind", [NODES[-1]]))

    def test_wrong_words_are_refused_with_the_right_ones(self):
        for wrong, text in [
            (dict(nodes=4711), "node 4711 does not exist: this machine has nodes"),
            (dict(nodes=NODES[0], policy="binds"), "expected default, preferred"),
            (dict(policy="interleave"), "needs nodes="),
            (dict(policy="local", nodes=0), "takes no nodes"),
            (dict(near="gpu:0", nodes=0), "leave out"),
            (dict(near="gpu:x"), "gpu"),
            (dict(nodes=[]), "no nodes"),
        ]:
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, text):
                with nodewise.place(**wrong):
                    pass
            self.assertEqual(policy()[0], "default")


class Memory(unittest.TestCase):
    def test_untouched_pages_are_on_no_node(self):
        with mmap.mmap(-1, 8 * PAGE) as memory:
            self.assertEqual(nodewise.pages(memory).counts, {None: 8})
            memory[0] = 1
            memory[3 * PAGE] = 1
            nodes = nodewise.pages(memory).nodes
            self.assertIsNotNone(nodes[0])
            self.assertIsNotNone(nodes[3])
            self.assertEqual(nodes.count(None), 6)

    def test_pages_are_on_the_node_of_the_policy(self):
        for node in NODES:
            with nodewise.place(nodes=node), mmap.mmap(-1, 16 * PAGE) as memory:
                memory.write(b"x" * (16 * PAGE))
                self.assertEqual(nodewise.pages(memory).counts, {node: 16})

    def test_read_only_and_odd_objects_are_looked_at(self):
        text = b"x" * (3 * PAGE)
        pages = nodewise.pages(text)
        self.assertIn(len(pages), (3, 4))
        self.assertNotIn(None, pages.nodes[:3])
        self.assertEqual(len(nodewise.pages(b"")), 0)
        with self.assertRaises(TypeError):
            nodewise.pages(3)

    def test_moved_pages_are_found_where_they_went(self):
        with mmap.mmap(-1, 4 * PAGE) as memory:
            memory.write(b"x" * (4 * PAGE))
            import ctypes

            held = ctypes.c_char.from_buffer(memory)
            for node in NODES:
                _native.move_to(ctypes.addressof(held), 4 * PAGE, node)
                self.assertEqual(nodewise.pages(memory).counts, {node: 4})
            del held


@unittest.skipIf(numpy is None, "NumPy is missing")
class Arrays(unittest.TestCase):
    def test_an_array_is_on_its_nodes(self):
        for node in NODES:
            array = nodewise.empty((64, 1024), "f8", nodes=node)
            self.assertEqual(array.shape, (64, 1024))
            self.assertEqual(nodewise.pages(array).counts, {node: 64 * 1024 * 8 // PAGE})
            array[:] = 2
            self.assertEqual(float(array.sum()), 2 * 64 * 1024)

    def test_interleaving_is_even(self):
        array = nodewise.empty(len(NODES) * 8 * PAGE, "u1", nodes="all", policy="interleave")
        self.assertEqual(nodewise.pages(array).counts, {node: 8 for node in NODES})

    def test_untouched_arrays_are_placed_by_their_policy_later(self):
        array = nodewise.empty(4 * PAGE, "u1", nodes=NODES[-1], touch=False)
        self.assertEqual(nodewise.pages(array).counts, {None: 4})
        array[:] = 7
        self.assertEqual(nodewise.pages(array).counts, {NODES[-1]: 4})

    def test_memory_lives_as_long_as_a_view_of_it(self):
        view = nodewise.empty(1 << 20, "u1", nodes=NODES[0])[1 << 19 :]
        for _ in range(8):
            nodewise.empty(1 << 20, "u1", nodes=NODES[0])
        view[:] = 3
        self.assertEqual(int(view.sum()), 3 << 19)

    def test_strides_holes_and_empty_arrays(self):
        array = nodewise.empty((32, PAGE), "u1", nodes=NODES[0])
        self.assertEqual(len(nodewise.pages(array[:, :16])), 32)
        self.assertEqual(nodewise.empty((0, 3), nodes=NODES[0]).shape, (0, 3))
        self.assertEqual(nodewise.empty((), "i4").shape, ())
        with self.assertRaises(TypeError):
            nodewise.empty(3, object)


class Tuning(unittest.TestCase):
    def test_a_command_is_tuned(self):
        study = nodewise.tune(["true"], runs=2, placements=["default", "membind=%d" % NODES[0]], seed=7)
        self.assertEqual(study["seed"], 7)
        self.assertEqual(len(study.placements), 2)
        self.assertIn("placement", repr(study))

    def test_a_function_is_tuned(self):
        study = nodewise.tune(work, runs=2, placements=["default", "membind=%d" % NODES[0]])
        self.assertEqual(study["rounds"], 2)
        with self.assertRaisesRegex(ValueError, "top of a module"):
            nodewise.tune(lambda: 3)


class Start(unittest.TestCase):
    def test_the_command_is_that_of_the_wheel(self):
        done = subprocess.run([nodewise.command_path(), "--version"], capture_output=True, text=True, check=True)
        self.assertIn("nodewise", done.stdout)

    def test_import_needs_no_numpy(self):
        words = "import sys, nodewise; sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", words]).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
