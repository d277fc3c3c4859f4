"""The methods of a machine, on one that is only a table of answers."""

import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from driver import machine
from driver.machine import AssertionFailed, Machine
from driver.shell import Reply, Shell
from driver.watch import MachineDied, Watch


class Answers(Shell):
    """An agent that answers from a list of (what the command contains, answer)."""

    def __init__(self, answers: list[tuple[str, Reply]]) -> None:
        self.answers = answers
        self.commands: list[str] = []

    def hello(self, seconds: float) -> str:
        return "boot"

    def run(self, command: str, seconds: int) -> Reply:
        self.commands.append(command)
        for at, (part, answer) in enumerate(self.answers):
            if part in command:
                # The last answer stays.
                if sum(part == other for other, _ in self.answers) > 1:
                    del self.answers[at]
                return answer
        raise AssertionError(f"nothing is said about {command}")


class Fake(Machine):
    """A machine whose process is a shell command on the host."""

    def __init__(self, folder: Path, console: str, answers: list[tuple[str, Reply]]) -> None:
        super().__init__("fake", Watch(), folder, folder)
        self.watch = self._watch
        self.shell = Answers(answers)
        self.starts: list[bool] = []
        self._script = console
        self.process: subprocess.Popen[bytes] | None = None

    def _boot(self, allow_reboot: bool) -> tuple[subprocess.Popen[bytes], Shell]:
        self.starts.append(allow_reboot)
        self.process = subprocess.Popen(["sh", "-c", self._script], stdout=subprocess.PIPE)
        return self.process, self.shell

    def release(self) -> None:
        self._ending = True
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self._reader is not None:
            self._reader.join()


def said(output: str, status: int = 0) -> Reply:
    return Reply(status, output, "")


class Methods(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        quiet = mock.patch.object(machine, "say")
        quiet.start()
        self.addCleanup(quiet.stop)
        quick = mock.patch.object(machine, "RETRY_SECONDS", 0.001)
        quick.start()
        self.addCleanup(quick.stop)

    def fake(self, *answers: tuple[str, Reply], console: str = "exec sleep 900") -> Fake:
        made = Fake(self.folder, console, list(answers))
        self.addCleanup(made.release)
        return made

    def test_a_command_starts_the_machine_once(self) -> None:
        fake = self.fake(("true", said("yes")))
        self.assertEqual(fake.succeed("true", "true"), "yesyes")
        self.assertEqual(fake.starts, [False])

    def test_succeed_and_fail_insist(self) -> None:
        fake = self.fake(("good", said("out")), ("bad", said("why", 3)))
        self.assertEqual(fake.fail("bad"), "why")
        with self.assertRaisesRegex(AssertionFailed, r"`bad` failed \(exit code 3\)\nwhy"):
            fake.succeed("good", "bad")
        with self.assertRaisesRegex(AssertionFailed, "`good` unexpectedly succeeded"):
            fake.fail("good")
        self.assertEqual(fake.execute("bad"), (3, "why"))

    def test_waiting_repeats_a_command(self) -> None:
        fake = self.fake(("try", said("", 1)), ("try", said("", 1)), ("try", said("now")))
        self.assertEqual(fake.wait_until_succeeds("try"), "now")
        self.assertEqual(len(fake.shell.commands), 3)
        with self.assertRaisesRegex(AssertionFailed, "timed out"):
            fake.wait_until_fails("try", timeout=0)

    def test_a_failed_unit_ends_the_wait_at_once(self) -> None:
        fake = self.fake(
            ("show", said("ActiveState=activating\n")), ("show", said("ActiveState=failed\n"))
        )
        with self.assertRaisesRegex(AssertionFailed, 'reached state "failed"'):
            fake.wait_for_unit("gate.service")
        self.assertEqual(len(fake.shell.commands), 2)

    def test_an_inactive_unit_that_nobody_starts_ends_the_wait(self) -> None:
        fake = self.fake(
            ("show", said("ActiveState=inactive\n")), ("list-jobs", said("No jobs running.\n"))
        )
        with self.assertRaisesRegex(AssertionFailed, "no pending jobs"):
            fake.wait_for_unit("gate.service")

    def test_an_inactive_unit_with_a_job_is_waited_for(self) -> None:
        fake = self.fake(
            ("show", said("ActiveState=inactive\n")),
            ("show", said("ActiveState=active\n")),
            ("list-jobs", said("1 gate.service start waiting\n")),
        )
        fake.wait_for_unit("gate.service")

    def test_properties_of_a_unit(self) -> None:
        fake = self.fake(("show", said("ActiveState=active\nExecStart={ path=/a ; argv[]=b }\n")))
        self.assertEqual(fake.get_unit_property("x", "ExecStart"), "{ path=/a ; argv[]=b }")
        fake.require_unit_state("x")
        with self.assertRaises(AssertionFailed):
            fake.require_unit_state("x", "inactive")
        with self.assertRaises(AssertionFailed):
            fake.get_unit_property("x", "Nothing")

    def test_a_panic_is_a_death_while_the_process_lives(self) -> None:
        fake = self.fake(console="echo '[ 1.0] Kernel panic - not syncing: x'; exec sleep 900")
        fake.start()
        with self.assertRaisesRegex(MachineDied, "fake died: .*Kernel panic - not syncing: x"):
            fake.watch.sleep(60)

    def test_an_end_that_nobody_asked_for_is_a_death(self) -> None:
        fake = self.fake(console="exit 7")
        fake.start()
        with self.assertRaisesRegex(MachineDied, "by itself with status 7"):
            fake.watch.sleep(60)
        asked = self.fake()
        asked.start()
        asked.release()
        asked.watch.check()
        self.assertFalse(asked.booted)

    def test_the_console_is_kept_and_searched(self) -> None:
        fake = self.fake(console="echo one; echo reached target two; exec sleep 900")
        fake.start()
        fake.wait_for_console_text("target t.o")
        with self.assertRaises(AssertionFailed):
            fake.wait_for_console_text("three", timeout=1)
        self.assertIn("one\n", (self.folder / "fake.console").read_text())

    def test_retry_says_when_it_is_the_last_time(self) -> None:
        asked: list[bool] = []

        def check(last: bool) -> bool:
            asked.append(last)
            return last

        machine.retry(check, Watch(), timeout=0.01)
        self.assertEqual(asked.count(True), 1)
        self.assertTrue(asked[-1])

    def test_a_user_s_manager_is_asked_by_the_user(self) -> None:
        fake = self.fake(("systemctl", said("")))
        fake.systemctl("status", user="alice")
        self.assertIn("su -l alice", fake.shell.commands[0])
        fake.start_job("a")
        self.assertEqual(fake.shell.commands[1], "systemctl start a")

    def test_logs_of_every_unit_are_kept(self) -> None:
        fake = self.fake(
            (
                "list-units",
                said("gate.service loaded active\nquiet.service loaded active\nx.mount a\n"),
            ),
            ("-u 'gate.service'", said("gate said\n")),
            ("-u 'quiet.service'", said("-- No entries --\n")),
            ("journalctl", said("all\n")),
        )
        fake.keep_logs(["gate.service"])
        kept = sorted(path.name for path in (self.folder / "fake.units").iterdir())
        self.assertEqual(kept, ["LIST", "gate.service"])
        self.assertEqual((self.folder / "fake.journal").read_text(), "all\n")


if __name__ == "__main__":
    unittest.main()
