"""Uploads one large file to Foldwork and to nginx on the same disk, downloads it again, and measures Foldwork's memory.

The two servers take turns, and each figure is the median of its rounds. nginx stores files with its dav module, and
serves them with sendfile. Foldwork syncs a file before it responds; nginx does not.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

LOWEST_RATIO = 0.7
MOST_MEMORY_MB = 64
LOOK_S = 0.01


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def resident_mb(process):
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024


class Peak:
    """The maximum growth of a process's memory while this context is active."""

    def __init__(self, process):
        self.process, self.before, self.peak, self.ended = process, resident_mb(process), 0.0, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.ended.wait(LOOK_S):
            self.peak = max(self.peak, resident_mb(self.process) - self.before)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def transfer(*options):
    """Returns the duration of a transfer in seconds, as measured by curl."""
    done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", *options], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.split()
    if not done[0].startswith("2"):
        sys.exit(f"{options} gets {done[0]}")
    return float(done[1])


class Foldwork:
    def __init__(self, program, folder):
        self.key = "sk_" + os.urandom(32).hex()
        environment = dict(os.environ, FOLDWORK_BOOTSTRAP_KEY=self.key, FOLDWORK_LOG__FILTER="warn",
                           FOLDWORK_FILES__URL=f"file://{folder}/files")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--database", f"surrealkv://{folder}/db"], cwd=folder,
            env=environment, stdout=subprocess.PIPE, text=True)
        self.url = next(line.split()[-1] for line in self.process.stdout if line.startswith("listening"))
        self.path = f"{self.ask('/workspace')['id']}/_/_/_/large.bin"

    def ask(self, path):
        request = urllib.request.Request(f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def upload(self, source):
        return transfer("-H", f"Authorization: Bearer {self.key}", "-T", str(source),
                        f"{self.url}/api/v1/files/{self.path}")

    def download(self):
        return transfer(self.ask(f"/files/{self.path}")["url"])

    def delete(self):
        transfer("-H", f"Authorization: Bearer {self.key}", "-H", "Content-Type: application/json",
                 "-d", json.dumps({"path": self.path}), f"{self.url}/api/v1/files/delete")


class Nginx:
    def __init__(self, folder):
        root = folder / "nginx"
        (root / "served").mkdir(parents=True)
        (root / "coming").mkdir()
        port = free_port()
        (root / "nginx.conf").write_text(f"""
            user root; worker_processes auto; daemon off; pid {root}/pid; error_log {root}/error.log;
            events {{ }}
            http {{
                access_log off; sendfile on; client_max_body_size 0; client_body_temp_path {root}/coming;
                server {{ listen 127.0.0.1:{port}; root {root}/served; location / {{ dav_methods PUT DELETE; }} }}
            }}""")
        self.process = subprocess.Popen(["nginx", "-p", root, "-c", root / "nginx.conf"])
        self.url = f"http://127.0.0.1:{port}/large.bin"
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("nginx does not listen")

    def upload(self, source):
        return transfer("-T", str(source), self.url)

    def download(self):
        return transfer(self.url)

    def delete(self):
        transfer("-X", "DELETE", self.url)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--folder", type=pathlib.Path, required=True)
    arguments.add_argument("--megabytes", type=int, default=1024)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--strict", action="store_true")
    arguments = arguments.parse_args()
    source = arguments.folder / "source.bin"
    with open(source, "wb") as file:
        block = os.urandom(1 << 20)
        for number in range(arguments.megabytes):
            file.write(number.to_bytes(8, "big") + block[8:])
    foldwork, nginx = Foldwork(arguments.program, arguments.folder), Nginx(arguments.folder)
    taken = {(peer, what): [] for peer in ("Foldwork", "nginx") for what in ("upload", "download")}
    memory = {"upload": [], "download": []}
    try:
        for _ in range(arguments.rounds):
            for what in ("upload", "download"):
                with Peak(foldwork.process) as peak:
                    taken["Foldwork", what].append(foldwork.upload(source) if what == "upload" else foldwork.download())
                memory[what].append(peak.peak)
                taken["nginx", what].append(nginx.upload(source) if what == "upload" else nginx.download())
            foldwork.delete()
            nginx.delete()
    finally:
        for process in (foldwork.process, nginx.process):
            process.send_signal(signal.SIGTERM)
            process.wait()
    rate = {key: arguments.megabytes / statistics.median(seconds) for key, seconds in taken.items()}
    print(f"{os.cpu_count()} processors, {arguments.megabytes} MB, median of {arguments.rounds}")
    print("| what | Foldwork | nginx | figure | wanted | memory above idle | wanted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    missed = 0
    for what in ("upload", "download"):
        ratio, above = rate["Foldwork", what] / rate["nginx", what], max(memory[what])
        print(f"| {what} | {rate['Foldwork', what]:.0f} MB/s | {rate['nginx', what]:.0f} MB/s | {ratio:.2f} "
              f"| at least {LOWEST_RATIO} | {above:.0f} MB | at most {MOST_MEMORY_MB} MB |")
        missed += (ratio < LOWEST_RATIO) + (above > MOST_MEMORY_MB)
    print(f"{missed} thresholds missed")
    shutil.rmtree(arguments.folder / "nginx", ignore_errors=True)
    sys.exit(1 if arguments.strict and missed else 0)


if __name__ == "__main__":
    main()
