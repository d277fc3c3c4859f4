"""The command line: `python3 -m driver FOLDER --cache DIR --logs DIR [--backend nspawn|qemu]`."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from . import image, nodes, nspawn
from .deadline import SECONDS, DeadlinePassed, deadline
from .log import say
from .machine import Machine
from .nspawn import Nspawn
from .qemu import Qemu, accelerator
from .qemu import missing as qemu_missing
from .script import Script
from .watch import Watch

# Set in the process that is inside the namespaces.
INSIDE = "E2E_INSIDE"
WORK = Path("/run/e2e")


def main() -> int:
    """Runs a scenario: 0 it passed, 1 it failed, 2 it could not be run."""
    options = arguments()
    if os.geteuid() != 0:
        print(
            "e2e: root is needed: machines have namespaces, mounts and a network", file=sys.stderr
        )
        return 2
    lacking = (qemu_missing() if options.backend == "qemu" else nspawn.missing()) + [
        name for name in ("mmdebstrap", "mke2fs") if shutil.which(name) is None
    ]
    if lacking:
        print(f"e2e: missing on this host: {', '.join(lacking)}", file=sys.stderr)
        return 2
    try:
        if INSIDE not in os.environ:
            prepare(options)
            enter()
        return inside(options)
    except (
        DeadlinePassed,
        image.ImageError,
        nodes.ScenarioError,
        subprocess.CalledProcessError,
    ) as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 2


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="driver", description=__doc__)
    parser.add_argument("folder", type=Path, help="the scenario: testScript, nodes/, closure")
    parser.add_argument("--backend", choices=("nspawn", "qemu"), default="nspawn")
    parser.add_argument("--cache", type=Path, required=True, help="where images are kept")
    parser.add_argument("--logs", type=Path, required=True, help="where logs and results go")
    parser.add_argument(
        "--deadline",
        type=seconds,
        default=SECONDS,
        metavar="SECONDS",
        help="what the whole run may take (default: %(default)s)",
    )
    return parser.parse_args()


def seconds(text: str) -> int:
    """Reads a time of the command line."""
    value = int(text)
    if not 1 <= value <= 7 * 24 * 3600:
        raise argparse.ArgumentTypeError("1 to 604800 seconds are possible")
    return value


def prepare(options: argparse.Namespace) -> None:
    """Makes the images, as long as there is a network to fetch packages from."""
    tree = image.root(options.cache)
    if options.backend == "qemu":
        image.root_disk(options.cache, tree)
        image.kernel(options.cache)


def enter() -> None:
    """Starts this program again in namespaces that end with it, and everything in them too."""
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
    words += ["--propagation", "private", sys.executable, "-m", "driver", *sys.argv[1:]]
    os.execvpe(words[0], words, {**os.environ, INSIDE: "1"})


def inside(options: argparse.Namespace) -> int:
    """Runs the scenario with a view of the host that ends with this process."""
    # The first process of a process namespace ignores what it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    # Hides the host's: nothing that runs there is of use here, and all of it goes away by itself.
    nspawn.call("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
    WORK.mkdir()
    if options.logs.exists():
        shutil.rmtree(options.logs)
    out = options.logs / "out"
    out.mkdir(parents=True)
    scenario = nodes.read(options.folder)
    watch = Watch()
    tree = image.root(options.cache)
    backend: Nspawn | Qemu
    if options.backend == "nspawn":
        backend = Nspawn(scenario, tree, WORK, watch)
    else:
        kernel = image.kernel(options.cache)
        disk = image.root_disk(options.cache, tree)
        backend = Qemu(
            scenario, kernel, disk, WORK, watch, accelerator(kernel, options.cache, WORK)
        )
    return run(options, backend, scenario, watch, out)


def run(
    options: argparse.Namespace,
    backend: Nspawn | Qemu,
    scenario: nodes.Scenario,
    watch: Watch,
    out: Path,
) -> int:
    """Makes the machines and runs the script; whatever happens, all that was made is let go."""
    machines: list[Machine] = []
    # The deadline is over before anything is let go, which it must not interrupt.
    with ExitStack() as held, deadline(options.deadline):
        held.callback(backend.close)
        backend.open()
        for node in scenario.nodes:
            machine = backend.machine(node, options.logs, out)
            held.callback(release, machine)
            machines.append(machine)
        script = Script(scenario.script, machines, watch)
        good = script.run()
        if not good:
            watch.clear()
            keep_logs(machines, scenario, options.logs)
    say(f"ran on {options.backend}")
    print(f"{script.passed} passed, {script.failed} failed", flush=True)
    return 0 if good else 1


def release(machine: Machine) -> None:
    """Ends a machine; one that cannot be ended is not in the way of what the script found."""
    try:
        machine.release()
    except Exception as error:
        say(f"{machine.name}: cannot be ended: {error}")


def keep_logs(machines: list[Machine], scenario: nodes.Scenario, logs: Path) -> None:
    """Asks every machine that still answers for its logs, and shows those of the tested units."""
    for machine, node in zip(machines, scenario.nodes, strict=True):
        units = node.tree / "etc/systemd/system"
        try:
            if machine.booted:
                machine.keep_logs([path.name for path in units.glob("*.service")])
        except Exception as error:  # a log that cannot be had must not hide the failure
            say(f"{machine.name}: no logs: {error}")
        except DeadlinePassed:
            say(f"{machine.name}: its logs take too long, no more are kept")
            break
    say(f"logs are in {logs}")


if __name__ == "__main__":
    sys.exit(main())
