"""The line protocol, and what happens when the other side is gone."""

import os
import socket
import subprocess
import threading
import time
import unittest

from driver import shell
from driver.shell import Reply, Shell, ShellError
from driver.watch import MachineDied, Watch


class Lines(unittest.TestCase):
    def test_bash_undoes_the_escapes(self) -> None:
        command = "echo 'a\\nb' \"$(printf '%s\\\\' c)\"\ncat <<'E'\n\\x41 %d ä\nE"
        line = shell.request(command, 7)
        self.assertEqual(line.count(b"\n"), 1)
        seconds, _, escaped = line.rstrip(b"\n").partition(b" ")
        self.assertEqual(seconds, b"7")
        undo = 'printf -v command "%b" "$1"; printf %s "$command"'
        words = [b"bash", b"-c", undo.encode(), b"bash", escaped]
        self.assertEqual(subprocess.run(words, capture_output=True).stdout.decode(), command)

    def test_a_command_fits_one_argument(self) -> None:
        shell.request("x" * shell.COMMAND_BYTES, 1)
        with self.assertRaises(ShellError):
            shell.request("x" * (shell.COMMAND_BYTES + 1), 1)
        with self.assertRaises(ShellError):
            shell.request("a\0b", 1)

    def test_an_answer_has_four_words(self) -> None:
        self.assertEqual(shell.reply(b"done aGk= 3 "), Reply(3, "hi", ""))
        self.assertEqual(shell.reply(b"done  0 b2g="), Reply(0, "", "oh"))
        for line in (b"", b"done aGk= 3", b"hello 1 2 3", b"done aGk= x ", b"done a$ 0 "):
            with self.assertRaises(ShellError):
                shell.reply(line)


class Talk(unittest.TestCase):
    def setUp(self) -> None:
        self.ours, self.agent = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(self.agent.close)
        self.watch = Watch()
        self.shell = Shell(self.ours.fileno(), self.ours.fileno(), self.watch)

    def test_a_command_is_sent_and_answered(self) -> None:
        self.agent.sendall(b"hello boot-1\ndone aGk= 4 \n")
        self.assertEqual(self.shell.hello(5), "boot-1")
        self.assertEqual(self.shell.run("echo hi", 9), Reply(4, "hi", ""))
        self.assertEqual(self.agent.recv(100), b"9 echo hi\n")

    def test_a_death_ends_the_wait_at_once(self) -> None:
        threading.Timer(0.05, self.watch.report, ("gate", "Kernel panic")).start()
        begun = time.monotonic()
        with self.assertRaisesRegex(MachineDied, "gate died: Kernel panic"):
            self.shell.run("sleep 900", 900)
        self.assertLess(time.monotonic() - begun, 60)

    def test_the_answer_to_an_interrupted_command_is_not_that_to_the_next(self) -> None:
        threading.Timer(0.05, self.watch.report, ("gate", "gone")).start()
        with self.assertRaises(MachineDied):
            self.shell.run("sleep 900", 900)
        self.watch.clear()
        self.agent.sendall(b"done b2xk 1 \ndone bmV3 0 \n")
        self.assertEqual(self.shell.run("echo new", 9), Reply(0, "new", ""))

    def test_a_dead_machine_gets_no_command(self) -> None:
        self.watch.report("gate", "gone")
        with self.assertRaises(MachineDied):
            self.shell.run("true", 1)
        self.watch.clear()
        self.agent.sendall(b"done  0 \n")
        self.assertEqual(self.shell.run("true", 1).status, 0)

    def test_an_agent_that_ends_or_is_silent_is_an_error(self) -> None:
        with self.assertRaisesRegex(ShellError, "not up"):
            self.shell.hello(0.01)
        self.agent.sendall(b"login: ")
        self.agent.shutdown(socket.SHUT_WR)
        with self.assertRaisesRegex(ShellError, "gone"):
            self.shell.hello(5)

    def test_something_else_than_a_greeting_is_an_error(self) -> None:
        self.agent.sendall(b"login:\n")
        with self.assertRaisesRegex(ShellError, "login"):
            self.shell.hello(5)


class Waiting(unittest.TestCase):
    def test_what_was_said_before_a_death_is_still_read(self) -> None:
        watch = Watch()
        source, sink = os.pipe()
        self.addCleanup(os.close, source)
        self.addCleanup(os.close, sink)
        os.write(sink, b"x")
        watch.report("a", "b")
        self.assertTrue(watch.wait(1, source))
        os.read(source, 1)
        with self.assertRaises(MachineDied):
            watch.wait(1, source)

    def test_sleeping_ends_with_a_death(self) -> None:
        watch = Watch()
        watch.sleep(0.01)
        watch.report("a", "b")
        with self.assertRaises(MachineDied):
            watch.sleep(900)
