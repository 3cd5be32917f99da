"""Starts the server and prints the seconds until its first response with status 200, its address, and its process
id."""

import http.client
import os
import re
import subprocess
import sys
import time

program, database, log = sys.argv[1:4]
began = time.monotonic()
with open(log, "ab") as errors:
    process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--database", database],
                               stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
for line in process.stdout:
    found = re.match(r"listening on http://(\S+)", line)
    if found:
        break
else:
    sys.exit(f"the server ended while starting, see {log}")
key = os.environ["FOLDWORK_BOOTSTRAP_KEY"]
connection = http.client.HTTPConnection(found.group(1), timeout=60)
connection.request("GET", "/api/v1/articles?limit=1", headers={"Authorization": f"Bearer {key}"})
response = connection.getresponse()
response.read()
seconds = time.monotonic() - began
if response.status != 200:
    process.kill()
    sys.exit(f"the first answer is {response.status}")
print(f"{seconds:.3f} {found.group(1)} {process.pid}")
