"""Connections that follow the log during the whole soak. They check that each event arrives once and in order."""

import re
import selectors
import socket
import struct
import threading
import time

# The lifetime of a connection in seconds. Afterwards the connection is broken, and a new connection continues at its
# position.
LIFE_S = 20
POSITION = re.compile(rb"\nid: ?(\d+)\n")
# The number of bytes kept from the last read, for matches across two reads.
KEPT = 64


class Stream:
    """One follower of the log."""

    def __init__(self, address, key, after):
        self.address, self.key, self.last = address, key, after
        self.socket, self.bytes = None, 0

    def connect(self, now):
        host, port = self.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        # Closing this socket resets the connection, so the server gets an error.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # HTTP/1.0 has no chunks, so the stream arrives without chunk headers.
        self.socket.sendall(f"GET /api/v1/events HTTP/1.0\r\nHost: {self.address}\r\nAuthorization: Bearer {self.key}\r\n"
                            f"Accept: text/event-stream\r\nLast-Event-ID: {self.last}\r\n\r\n".encode())
        self.socket.setblocking(False)
        self.opened, self.buffer = now, b""

    def take(self, data):
        """Processes received data. Returns a description of the first mistake, or `None`."""
        self.buffer += data
        self.bytes += len(data)
        end = 0
        for found in POSITION.finditer(self.buffer):
            position, end = int(found.group(1)), found.end()
            if position != self.last + 1:
                return f"a stream continues with {position} after {self.last}"
            self.last = position
        self.buffer = self.buffer[max(end, len(self.buffer) - KEPT):]
        return None


class Streams:
    """All streams, read by one thread."""

    def __init__(self, address, key, number, after):
        self.streams = [Stream(address, key, after) for _ in range(number)]
        self.wrong, self.ending = [], threading.Event()
        self.target = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        selector = selectors.DefaultSelector()
        try:
            began = time.monotonic()
            for number, stream in enumerate(self.streams):
                # Spreads the times at which streams are broken.
                stream.connect(began - LIFE_S * number / len(self.streams))
                selector.register(stream.socket, selectors.EVENT_READ, stream)
            while not self.ending.is_set() or not self.at_end():
                for ready, _ in selector.select(0.2):
                    self.read(selector, ready.data)
                if self.wrong:
                    return
                self.renew(selector)
        except OSError as failure:
            self.wrong.append(f"a stream broke: {failure}")
        finally:
            for stream in self.streams:
                if stream.socket:
                    stream.socket.close()

    def read(self, selector, stream):
        data = stream.socket.recv(1 << 20)
        wrong = stream.take(data) if data else "a stream was ended by the server"
        if wrong:
            self.wrong.append(wrong)

    def renew(self, selector):
        now = time.monotonic()
        for stream in self.streams:
            if now - stream.opened > LIFE_S:
                selector.unregister(stream.socket)
                stream.socket.close()
                stream.connect(now)
                selector.register(stream.socket, selectors.EVENT_READ, stream)

    def at_end(self):
        return self.target is not None and all(stream.last >= self.target for stream in self.streams)

    def end(self, head, limit_s):
        """Waits until all streams have reached the end of the log, and returns descriptions of all mistakes."""
        self.target = head
        self.ending.set()
        self.thread.join(limit_s)
        if self.thread.is_alive():
            self.wrong.append(f"streams are at {sorted(stream.last for stream in self.streams)} of {head}")
            self.target = 0
            self.thread.join()
        return self.wrong
