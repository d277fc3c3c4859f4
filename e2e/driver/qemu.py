"""Machines as guests of QEMU, with a kernel of their own.

The image is shared and read-only; what a machine writes goes to a disk of its own, which is there
again after a crash. All of them are on one hub of VDE, which no host interface belongs to.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from . import image, initramfs
from .log import say
from .machine import TIMEOUT, AssertionFailed, Machine
from .nodes import Node, Scenario, lay
from .shell import Shell, ShellError
from .watch import Watch

# The disk of a machine; the file has holes, so it costs what is written.
DISK_MIB = 4096
PROBE_SECONDS = 8.0
# A guest that lives for minutes and talks to its like only.
QUICK = "quiet mitigations=off audit=0 rcupdate.rcu_expedited=1 systemd.show_status=false"
PROGRAM = "qemu-system-x86_64"
TCG = ["-cpu", "qemu64", "-accel", "tcg,thread=multi,tb-size=256"]
KVM = ["-cpu", "host", "-accel", "kvm"]


def accelerator(kernel: Path, cache: Path, work: Path) -> list[str]:
    """KVM where a guest really runs under it, else emulation; asked once a boot of the host."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return TCG
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    answer = cache / "kvm-works"
    if answer.is_file() and answer.read_text().startswith(boot):
        works = answer.read_text().endswith("yes")
    else:
        works = probe(kernel, work)
        answer.write_text(f"{boot} {'yes' if works else 'no'}")
    say("qemu: with KVM" if works else "qemu: /dev/kvm is there and runs no guest, so emulated")
    return KVM if works else TCG


def probe(kernel: Path, work: Path) -> bool:
    """Whether a guest reaches its first program under KVM."""
    initrd = work / "probe.initrd"
    initrd.write_bytes(initramfs.build(kernel))
    words = [*common(KVM, 256), *booted(kernel, initrd, "e2e.probe"), "-serial", "stdio"]
    try:
        said = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return b"e2e-probe-ok" in said.stdout


def common(accelerated: list[str], memory: int) -> list[str]:
    """What every guest has."""
    machine = ["-machine", "pc", "-m", str(memory), "-smp", "1", "-nodefaults"]
    return [PROGRAM, *accelerated, *machine, "-no-user-config", "-display", "none"]


def booted(kernel: Path, initrd: Path, words: str) -> list[str]:
    """Kernel, initramfs and command line."""
    file = next((kernel / "boot").glob("vmlinuz-*"))
    line = f"console=ttyS0 {QUICK} panic=-1 {words}"
    return ["-kernel", str(file), "-initrd", str(initrd), "-append", line]


class Qemu:
    """The backend: what all its machines share."""

    def __init__(
        self,
        scenario: Scenario,
        kernel: Path,
        disk: Path,
        work: Path,
        watch: Watch,
        accelerated: list[str],
    ) -> None:
        self._scenario = scenario
        self._kernel = kernel
        self._disk = disk
        self._work = work
        self._watch = watch
        self._accelerated = accelerated
        self._store: Path | None = None
        self._hub: subprocess.Popen[bytes] | None = None

    def open(self) -> None:
        """Makes what all machines share; `close` is right after a failure of it too."""
        work = self._work
        (work / "initrd").write_bytes(initramfs.build(self._kernel))
        if self._scenario.closure:
            self._store = work / "store"
            store_disk(self._scenario.closure, work / "closure", self._store)
        self._hub = subprocess.Popen(
            ["vde_switch", "-s", str(work / "vde"), "--hub"],
            # It ends with its standard input.
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        wait_for(work / "vde/ctl")

    def machine(self, node: Node, logs: Path, out: Path) -> Machine:
        """Makes the machine of a node; it is off."""
        folder = self._work / node.name
        (folder / "disk/upper").mkdir(parents=True)
        (folder / "disk/work").mkdir()
        lay(node, self._scenario.nodes, folder / "disk/upper")
        image.disk(folder / "disk", folder / "node", DISK_MIB)
        drives = [(self._disk, "readonly=on"), (folder / "node", "cache=unsafe")]
        if self._store is not None:
            drives.append((self._store, "readonly=on"))
        words = common(self._accelerated, node.memory)
        address = f"e2e.address={node.address}"
        words += booted(self._kernel, self._work / "initrd", address)
        for path, mode in drives:
            words += ["-drive", f"if=virtio,format=raw,file={path},{mode}"]
        words += ["-device", "virtio-rng-pci", "-device", "virtio-serial-pci", "-serial", "stdio"]
        words += ["-chardev", f"socket,id=agent,path={folder}/agent,server=on,wait=off"]
        words += ["-device", "virtserialport,chardev=agent,name=e2e-agent"]
        words += ["-netdev", f"vde,id=net,sock={self._work}/vde"]
        mac = f"52:54:00:12:01:{node.number:02x}"
        words += ["-device", f"virtio-net-pci,netdev=net,id=cable,mac={mac}"]
        words += ["-qmp", f"unix:{folder}/qmp,server=on,wait=off"]
        return Guest(node, folder, words, self._watch, logs, out)

    def close(self) -> None:
        """Ends the hub; the files go with the mount that they are in."""
        if self._hub is not None:
            self._hub.terminate()
            self._hub.wait()


def store_disk(closure: tuple[Path, ...], folder: Path, path: Path) -> None:
    """Makes a disk of the store paths that the machines use; they are mounted, not copied."""
    folder.mkdir()
    for source in closure:
        place = folder / source.name
        if source.is_symlink():
            place.symlink_to(source.readlink())
            continue
        if source.is_dir():
            place.mkdir()
        else:
            place.touch()
        subprocess.run(["mount", "--bind", str(source), str(place)], check=True)
    image.disk(folder, path, journal=False)


def wait_for(path: Path, seconds: float = 10.0) -> None:
    """Waits for the socket of a program that was just started."""
    until = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > until:
            raise image.ImageError(f"`{path}` did not appear")
        time.sleep(0.01)


class Guest(Machine):
    """One guest."""

    def __init__(
        self, node: Node, folder: Path, words: list[str], watch: Watch, logs: Path, out: Path
    ) -> None:
        super().__init__(node.name, watch, logs, out)
        self._folder = folder
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: socket.socket | None = None

    def _boot(self, allow_reboot: bool) -> tuple[subprocess.Popen[bytes], Shell]:
        for name in ("agent", "qmp"):
            (self._folder / name).unlink(missing_ok=True)
        self._process = subprocess.Popen(
            self._words if allow_reboot else [*self._words, "-no-reboot"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        wait_for(self._folder / "qmp")
        self._agent = socket.socket(socket.AF_UNIX)
        self._agent.connect(str(self._folder / "agent"))
        descriptor = self._agent.fileno()
        return self._process, Shell(descriptor, descriptor, self._watch)

    def release(self) -> None:
        """Kills the guest, as a power cut does."""
        self._ending = True
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._reader is not None:
            self._reader.join()
        if self._agent is not None:
            self._agent.close()
        self._connected = False

    def _monitor(self, command: str, **arguments: object) -> None:
        """Has QEMU's monitor run one command."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(30)
            monitor.connect(str(self._folder / "qmp"))
            with monitor.makefile("rw") as talk:
                talk.readline()  # the greeting
                for name, words in (("qmp_capabilities", {}), (command, arguments)):
                    talk.write(json.dumps({"execute": name, "arguments": words}) + "\n")
                    talk.flush()
                    # Events may come before the answer.
                    while not (
                        {"return", "error"} & (answer := json.loads(talk.readline())).keys()
                    ):
                        pass
                    if "error" in answer:
                        raise AssertionFailed(f"{self.name}: {name}: {answer['error']}")

    def shutdown(self) -> None:
        """Powers the machine off and waits until it is."""
        if not self.booted:
            return
        self.connect()
        self.log("shutting down")
        self._ending = True
        with suppress(ShellError):  # the agent may be gone before it answers
            self.execute("systemctl --no-block poweroff")
        self.wait_for_shutdown()

    def wait_for_shutdown(self) -> None:
        """Waits until the machine is off."""
        self._ending = True
        assert self._process is not None
        self._process.wait(TIMEOUT)
        self.release()

    def crash(self) -> None:
        """Cuts the power."""
        self.log("cutting the power")
        self.release()

    def reboot(self) -> None:
        """Presses Ctrl+Alt+Delete; the machine was started with `allow_reboot`."""
        self.connect()
        self.log("rebooting")
        keys = [{"type": "qcode", "data": code} for code in ("ctrl", "alt", "delete")]
        self._monitor("send-key", keys=keys)
        self._connected = False

    def block(self) -> None:
        """Unplugs the cable."""
        self._monitor("set_link", name="cable", up=False)

    def unblock(self) -> None:
        """Plugs the cable in again."""
        self._monitor("set_link", name="cable", up=True)


def missing() -> list[str]:
    """Programs that this backend needs and the host lacks."""
    names = (PROGRAM, "vde_switch", "apt-get", "dpkg-deb", "unshare")
    return [name for name in names if shutil.which(name) is None]
