"""What a scenario's folder is, and the tree that a machine gets."""

import tempfile
import unittest
from pathlib import Path

from driver import nodes
from driver.nodes import ScenarioError


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "scenario"
        self.target = Path(folder.name) / "target"

    def scenario(self, *names: str) -> None:
        for name in names:
            (self.folder / "nodes" / name / "etc/systemd/system").mkdir(parents=True)
        (self.folder / "testScript").write_text("")

    def test_machines_are_numbered_by_name(self) -> None:
        self.scenario("worker", "gate", "operator")
        (self.folder / "nodes.json").write_text('{"worker":{"memorySize":2048}}')
        (self.folder / "closure").write_text("/nix/store/b\n/nix/store/a\n")
        read = nodes.read(self.folder)
        self.assertEqual(
            [(node.name, node.address, node.memory) for node in read.nodes],
            [
                ("gate", "192.168.1.1", 1024),
                ("operator", "192.168.1.2", 1024),
                ("worker", "192.168.1.3", 2048),
            ],
        )
        self.assertEqual(read.closure, (Path("/nix/store/a"), Path("/nix/store/b")))

    def test_other_folders_are_refused(self) -> None:
        self.folder.mkdir()
        with self.assertRaisesRegex(ScenarioError, "testScript"):
            nodes.read(self.folder)
        (self.folder / "testScript").write_text("")
        with self.assertRaisesRegex(ScenarioError, "0 machines"):
            nodes.read(self.folder)
        (self.folder / "nodes/two words").mkdir(parents=True)
        with self.assertRaisesRegex(ScenarioError, "two words"):
            nodes.read(self.folder)

    def test_the_tree_lies_under_what_the_driver_adds(self) -> None:
        self.scenario("gate", "worker")
        tree = self.folder / "nodes/gate"
        units = tree / "etc/systemd/system"
        (units / "gate.service").write_text("[Service]\n")
        (units / "gate.service").chmod(0o444)
        (units / "getty.target").write_text("mine\n")
        (units / "link.service").symlink_to("/nix/store/x/link.service")
        (tree / "etc/run.sh").write_text("#!/bin/sh\n")
        (tree / "etc/run.sh").chmod(0o555)
        (tree / "firewall").mkdir()
        read = nodes.read(self.folder)
        nodes.lay(read.nodes[0], read.nodes, self.target)
        made = self.target / "etc/systemd/system"
        self.assertEqual((made / "gate.service").stat().st_mode & 0o777, 0o644)
        self.assertEqual((self.target / "etc/run.sh").stat().st_mode & 0o777, 0o755)
        self.assertEqual(str((made / "link.service").readlink()), "/nix/store/x/link.service")
        self.assertEqual((made / "getty.target").read_text(), "mine\n", "its own is not masked")
        self.assertEqual(str((made / "systemd-logind.service").readlink()), "/dev/null")
        self.assertEqual((self.target / "etc/hostname").read_text(), "gate\n")
        self.assertIn("192.168.1.2 worker\n", (self.target / "etc/hosts").read_text())
        self.assertEqual(len((self.target / "etc/machine-id").read_text()), 33)
        self.assertTrue((made / "basic.target.wants/e2e-agent.service").exists())
        self.assertTrue((self.target / "usr/local/lib/e2e/agent.sh").is_file())
        self.assertFalse((self.target / "firewall").exists())

    def test_hosts_of_the_scenario_stay(self) -> None:
        self.scenario("gate")
        (self.folder / "nodes/gate/etc/hosts").write_text("own\n")
        read = nodes.read(self.folder)
        nodes.lay(read.nodes[0], read.nodes, self.target)
        self.assertEqual((self.target / "etc/hosts").read_text(), "own\n")
