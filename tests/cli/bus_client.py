"""A D-Bus client that may misbehave: messages are made by hand, byte by byte.

    bus_client.py SOCKET flood COUNT    COUNT calls that are wrong each in its way; prints how many got which answer
    bus_client.py SOCKET import FILE... Import of a descriptor opened for reading; or of "pipe", "socket", "memfd",
                                        "memfd-large", "none" (a number without a descriptor)
    bus_client.py SOCKET bad-path       a syntactically wrong object path: prints whether the bus hung up

--as-nobody after SOCKET: as user 65534.
"""
import array
import collections
import os
import random
import socket
import struct
import sys

NAME, PATH = "org.pageclear.Calibrd1", "/org/pageclear/Calibrd1"
PROPERTIES = "org.freedesktop.DBus.Properties"
WINDOW = 32  # calls that wait for an answer: far below the bus's own limit
CALL, ERROR = 1, 3


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def text(value):
    value = value.encode()
    return struct.pack("<I", len(value)) + value + b"\0"


def signature(value):
    return bytes([len(value)]) + value.encode() + b"\0"


def marshal(types, values):
    """Basic types, and arrays of strings ("A"), of one letter each."""
    body = b""
    for kind, value in zip(types, values):
        if kind == "s":
            body = pad(body, 4) + text(value)
        elif kind in "uh":
            body = pad(body, 4) + struct.pack("<I", value)
        elif kind == "t":
            body = pad(body, 8) + struct.pack("<Q", value)
        elif kind == "d":
            body = pad(body, 8) + struct.pack("<d", value)
        elif kind == "v":  # a variant of a string
            body = pad(body + signature("s"), 4) + text(value)
        elif kind == "A":
            inner = b""
            for one in value:
                inner = pad(inner, 4) + text(one)
            body = pad(body, 4) + struct.pack("<I", len(inner)) + inner
    return body


class Bus:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.serial, self.buffer = 0, b""
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        self.line()
        self.socket.sendall(b"NEGOTIATE_UNIX_FD\r\n")
        self.line()
        self.socket.sendall(b"BEGIN\r\n")
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        self.answer()

    def line(self):
        while b"\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        found, self.buffer = self.buffer.split(b"\r\n", 1)
        if not found.startswith((b"OK", b"AGREE")):
            sys.exit(found.decode())

    def call(self, name, path, interface, member, types="", values=(), fds=()):
        self.serial += 1
        body = marshal(types, values)
        shown = types.replace("A", "as")
        fields = b""
        entries = [(1, "o", text(path)), (3, "s", text(member)), (6, "s", text(name))]
        if interface:
            entries.append((2, "s", text(interface)))
        if shown:
            entries.append((8, "g", signature(shown)))
        if fds:
            entries.append((9, "u", struct.pack("<I", len(fds))))
        for code, kind, value in entries:
            fields = pad(fields, 8) + bytes([code]) + signature(kind)
            fields = (fields if kind == "g" else pad(fields, 4)) + value
        head = b"l" + bytes([CALL, 0, 1]) + struct.pack("<III", len(body), self.serial, len(fields))
        message = pad(head + fields, 8) + body
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.socket.sendmsg([message], ancillary)
        self.socket.sendall(message[sent:])

    def fill(self, size):
        while len(self.buffer) < size:
            got = self.socket.recv(65536)
            if not got:
                raise EOFError
            self.buffer += got

    def answer(self):
        """The next answer to one of our calls: its error's name and text, "" and the body of one that went well."""
        while True:
            self.fill(16)
            kind, (size, _, fields) = self.buffer[1], struct.unpack("<III", self.buffer[4:16])
            begin = 16 + fields + -fields % 8
            self.fill(begin + size)
            head, body, self.buffer = self.buffer[16 : 16 + fields], self.buffer[begin : begin + size], self.buffer[begin + size :]
            if kind == ERROR:
                at = head.index(b"\x04\x01s\0") + 4
                length = struct.unpack("<I", head[at : at + 4])[0]
                return head[at + 4 : at + 4 + length].decode(), body[4:-1].decode(errors="replace")
            if kind == 2:
                return "", body


def wrong_call(dice):
    """name, path, interface, member, types, values of a call that nothing good can come of."""
    member = dice.choice(["Calibrate", "Verify", "Cancel", "Reload", "Rollback", "Import"])
    types = dice.choice(["u", "d", "v", "A", "ss", "st", "ts", "tt", "sssssss", "AA", "vv"])
    example = {"s": "quick", "u": 7, "t": 1, "d": 0.5, "v": "quick", "A": ["quick"] * dice.choice([0, 1, 1000])}
    return dice.choice(
        [
            (NAME, PATH, NAME, member, types, [example[kind] for kind in types]),
            (NAME, PATH, NAME, "Calibrate", "s", ["x" * dice.choice([1, 40, 4096, 1 << 18])]),
            (NAME, PATH, NAME, "Verify", "s", ["quick\u20ac\n\x1b[31m" * dice.choice([1, 100])]),
            (NAME, PATH, NAME, "Rollback", "t", [dice.choice([0, 10, 1 << 63, (1 << 64) - 1])]),
            (NAME, PATH, NAME, dice.choice(["Calibrat", "calibrate", "X" * 200]), "s", ["quick"]),
            (NAME, PATH, NAME + "0", "Calibrate", "s", ["quick"]),
            (NAME, dice.choice(["/", PATH + "/x", "/org", "/x" * 300]), NAME, "Cancel", "", []),
            (NAME, PATH, PROPERTIES, "Get", "ss", [NAME, dice.choice(["", "state", "State\u00e9", "y" * 70000])]),
            (NAME, PATH, PROPERTIES, "Get", "uu", [1, 1]),
            (NAME, PATH, PROPERTIES, "Get", "", []),
            (NAME, PATH, PROPERTIES, "Set", "ssv", [NAME, dice.choice(["State", "Progress", "Nothing"]), "idle"]),
            (NAME, PATH, PROPERTIES, "GetAll", "s", ["no interface"]),
        ]
    )


def flood(bus, count):
    dice, answers, waiting = random.Random(1), collections.Counter(), 0
    while count > 0 or waiting > 0:
        if count > 0 and waiting < WINDOW:
            bus.call(*wrong_call(dice))
            count, waiting = count - 1, waiting + 1
        else:
            answers[bus.answer()[0] or "went well"] += 1
            waiting -= 1
    for name, times in sorted(answers.items()):
        print(times, name)


def descriptor(what):
    if what == "pipe":
        return os.pipe()[0]
    if what == "socket":
        return socket.socketpair()[0].detach()
    if what.startswith("memfd"):
        fd = os.memfd_create("policy")
        os.write(fd, b"format: 1\n" + b"#" * (65527 if what == "memfd-large" else 0))
        return fd
    return os.open(what, os.O_RDONLY)


def import_policy(bus, what):
    if what == "none":
        bus.call(NAME, PATH, NAME, "Import", "h", [0])
    else:
        fd = descriptor(what)
        bus.call(NAME, PATH, NAME, "Import", "h", [0], [fd])
        os.close(fd)
    name, body = bus.answer()
    print(f"{name}: {body}" if name else struct.unpack("<Q", body)[0])


def bad_path(bus):
    try:
        bus.call(NAME, "no/slash", NAME, "Cancel")
        print(bus.answer()[0])
    except (EOFError, ConnectionError):
        print("hung up")


def main(path, verb, *words):
    if verb == "--as-nobody":
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        verb, *words = words
    bus = Bus(path)
    if verb == "flood":
        flood(bus, int(words[0]))
    elif verb == "import":
        for word in words:
            import_policy(bus, word)
    elif verb == "bad-path":
        bad_path(bus)
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
