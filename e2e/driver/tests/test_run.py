"""A run lets go of all that it made, whatever fails, and has an end."""

import argparse
import contextlib
import io
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import cast
from unittest import mock

from driver import __main__ as program
from driver import nodes, nspawn, script
from driver.deadline import DeadlinePassed, deadline
from driver.watch import Watch

# Longer than any test takes.
LONG = 3600.0
BROKEN = subprocess.CalledProcessError(1, "ip")


class Backend:
    """A backend that notes what is done to it; what is named in `broken` raises."""

    def __init__(self, broken: dict[str, BaseException]) -> None:
        self.broken = broken
        self.done: list[str] = []

    def note(self, what: str) -> None:
        self.done.append(what)
        if what in self.broken:
            raise self.broken[what]

    def open(self) -> None:
        self.note("open")

    def machine(self, node: nodes.Node, logs: Path, out: Path) -> mock.Mock:
        self.note(f"make {node.name}")
        made = mock.Mock(booted=True)
        made.name = node.name
        made.release.side_effect = lambda: self.note(f"release {node.name}")
        made.keep_logs.side_effect = lambda _: self.note(f"logs of {node.name}")
        return made

    def close(self) -> None:
        self.note("close")


class Running(unittest.TestCase):
    def run_script(self, backend: Backend, text: str = "pass\n") -> tuple[int, str]:
        said = io.StringIO()
        with (
            tempfile.TemporaryDirectory() as name,
            mock.patch.object(script, "say"),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            folder = Path(name)
            (folder / "testScript").write_text(text)
            for node in ("a", "b", "c"):
                (folder / "nodes" / node).mkdir(parents=True)
            options = argparse.Namespace(deadline=LONG, logs=folder, backend="nspawn")
            scenario = nodes.read(folder)
            made = cast(nspawn.Nspawn, backend)
            return program.run(options, made, scenario, Watch(), folder), said.getvalue()

    def test_all_is_let_go(self) -> None:
        backend = Backend({})
        status, said = self.run_script(backend)
        self.assertEqual(status, 0)
        self.assertIn("1 passed, 0 failed", said)
        made = ["open", "make a", "make b", "make c"]
        self.assertEqual(backend.done, [*made, "release c", "release b", "release a", "close"])

    def test_a_backend_that_cannot_be_opened_is_closed(self) -> None:
        backend = Backend({"open": BROKEN})
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_script(backend)
        self.assertEqual(backend.done, ["open", "close"])

    def test_a_machine_that_cannot_be_made_leaves_no_other(self) -> None:
        backend = Backend({"make b": BROKEN})
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_script(backend)
        self.assertEqual(backend.done, ["open", "make a", "make b", "release a", "close"])

    def test_a_machine_that_cannot_be_ended_is_alone_in_that(self) -> None:
        backend = Backend({"release c": OSError("busy"), "release b": OSError("busy")})
        status, said = self.run_script(backend)
        self.assertEqual(status, 0)
        self.assertIn("c: cannot be ended: busy", said)
        self.assertEqual(backend.done[-4:], ["release c", "release b", "release a", "close"])

    def test_a_signal_to_end_while_machines_end_is_no_reason_to_keep_the_rest(self) -> None:
        backend = Backend({"release c": SystemExit(2)})
        with self.assertRaises(SystemExit):
            self.run_script(backend)
        self.assertEqual(backend.done[-4:], ["release c", "release b", "release a", "close"])

    def test_a_script_without_end_fails_at_the_deadline(self) -> None:
        text = (
            "import signal\n"
            "with subtest('endless'):\n"
            "    while True:\n"
            "        try:\n"
            "            signal.raise_signal(signal.SIGALRM)\n"
            "        except Exception:\n"
            "            pass\n"
        )
        backend = Backend({})
        status, said = self.run_script(backend, text)
        self.assertEqual(status, 1)
        self.assertIn("0 passed, 1 failed", said)
        self.assertIn("testScript:5: signal.raise_signal", said)
        self.assertIn("not over after 3600 seconds", said)
        self.assertIn("logs of a", backend.done)
        self.assertEqual(backend.done[-1], "close")

    def test_logs_that_take_too_long_are_given_up(self) -> None:
        backend = Backend({"logs of a": DeadlinePassed("again")})
        status, _ = self.run_script(backend, "1 / 0\n")
        self.assertEqual(status, 1)
        self.assertNotIn("logs of b", backend.done)
        self.assertEqual(backend.done[-1], "close")


class Deadline(unittest.TestCase):
    def test_it_comes_again_and_ends_with_its_block(self) -> None:
        with self.assertRaises(DeadlinePassed), deadline(0.01, LONG):
            while True:
                time.sleep(0.01)
        with deadline(LONG, 7.0):
            self.assertEqual(signal.getitimer(signal.ITIMER_REAL)[1], 7.0)
        self.assertEqual(signal.getitimer(signal.ITIMER_REAL), (0.0, 0.0))
        self.assertEqual(signal.getsignal(signal.SIGALRM), signal.SIG_DFL)


class Opening(unittest.TestCase):
    def test_a_container_host_without_network_keeps_no_control_group(self) -> None:
        def call(*words: str) -> None:
            if words[0] == "ip":
                raise BROKEN

        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as patched:
            groups = Path(name) / "cgroup"
            groups.mkdir()
            for what, value in (
                ("CGROUP", groups),
                ("NETNS", Path(name) / "netns"),
                ("call", call),
                ("subprocess", mock.Mock()),
            ):
                patched.enter_context(mock.patch.object(nspawn, what, value))
            scenario = nodes.Scenario(Path("s"), (), ())
            backend = nspawn.Nspawn(scenario, Path("i"), Path("w"), Watch())
            with self.assertRaises(subprocess.CalledProcessError):
                backend.open()
            self.assertEqual(len(list(groups.iterdir())), 1)
            backend.close()
            self.assertEqual(list(groups.iterdir()), [])
