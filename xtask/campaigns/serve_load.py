#!/usr/bin/env python3
"""Measures `tandem serve`: many clients, time to the first sentence, memory. Needs Python 3.9 and nothing else.

    tandem train --train-data demo --checkpoint-dir run --size tiny --max-steps 20
    python3 xtask/campaigns/serve_load.py --program target/release/tandem --checkpoint run
    python3 xtask/campaigns/serve_load.py --checkpoint run --requests 100 --clients 8

Starts the server on a free port of this machine and ends it. Exits with 1 if a request was lost, if the
first sentence of a long text came later than its limit, or if the memory grew.
"""
import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time

SENTENCE = "The quick brown fox jumps over the lazy dog."
# The first sentence may come this much later than it takes alone.
FIRST_LIMIT = 0.150
# Growth of the memory between the first quarter of the requests and the end that counts as flat.
MEMORY_LIMIT = 0.10


def main():
    args = arguments()
    if args.url:
        faults = measure(args, args.pid, int(re.search(r":(\d+)/?$", args.url).group(1)))
        return report(faults)
    command = [args.program, "serve", "--checkpoint", args.checkpoint, "--port", "0"] + args.flag
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
        faults = measure(args, server.pid, port)
    finally:
        server.send_signal(signal.SIGINT)
        code = server.wait(timeout=60)
    if code != 0:
        faults.append(f"the server ended with {code}")
    return report(faults)


def report(faults):
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    return 1 if faults else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="tandem")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--checkpoint", help="start a server with this voice")
    what.add_argument("--url", help="use a server that runs on this machine; needs --pid")
    parser.add_argument("--pid", type=int, default=0, help="its process, whose memory is read")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--flag", action="append", default=[], help="further flag of the server, as --flag=--workers=2")
    return parser.parse_args()


def measure(args, pid, port):
    model = json.loads(get(port, "/v1/models"))["data"][0]["id"]
    faults = []
    speak(port, model, SENTENCE)  # Warm up.
    faults += first_sentence(port, model)
    faults += many(args, pid, port, model)
    return faults


def first_sentence(port, model):
    """The first sentence of ten, against one sentence alone; the best of five each, since other programs disturb."""
    alone = min(speak(port, model, SENTENCE)[0] for _ in range(5))
    first, whole, _ = min(speak(port, model, " ".join([SENTENCE] * 10)) for _ in range(5))
    print(f"one sentence alone: {1000 * alone:.0f} ms; ten sentences: first {1000 * first:.0f} ms, all {1000 * whole:.0f} ms")
    late = first - alone
    return [f"the first sentence came {1000 * late:.0f} ms late"] if late > FIRST_LIMIT else []


def many(args, pid, port, model):
    lock, left, lost, memory, times = threading.Lock(), [args.requests], [], [], []

    def client(number):
        while True:
            with lock:
                if left[0] == 0:
                    return
                left[0] -= 1
                memory.append(resident(pid))
            try:
                first, _, length = speak(port, model, f"Hello from client {number}. How are you?")
                if length < 1000:
                    lost.append(f"{length} bytes")
                times.append(first)
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                lost.append(repr(error))

    began = time.monotonic()
    clients = [threading.Thread(target=client, args=(number,)) for number in range(args.clients)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    took = time.monotonic() - began
    memory.append(resident(pid))
    times.sort()
    middle, worst = times[len(times) // 2] if times else 0, times[-1] if times else 0
    print(f"{args.requests} requests from {args.clients} clients in {took:.1f} s ({args.requests / took:.1f} per second), "
          f"{len(lost)} lost; first audio: median {middle:.2f} s, worst {worst:.2f} s")
    early, end = max(memory[:len(memory) // 4 + 1]), memory[-1]
    print(f"memory: {early / 1024:.0f} MiB after a quarter, {end / 1024:.0f} MiB at the end, most {max(memory) / 1024:.0f} MiB")
    faults = [f"{len(lost)} requests were lost, such as {lost[0]}"] if lost else []
    if end > early * (1 + MEMORY_LIMIT):
        faults.append(f"the memory grew from {early} to {end} KiB")
    return faults


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    return connection.getresponse().read()


def speak(port, model, text):
    """Seconds until the first audio, seconds until the end, bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = json.dumps({"model": model, "voice": "default", "input": text, "response_format": "pcm"})
    began = time.monotonic()
    connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    length = len(answer.read1(1 << 16))
    first = time.monotonic() - began
    length += len(answer.read())
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}")
    connection.close()
    return first, time.monotonic() - began, length


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


if __name__ == "__main__":
    sys.exit(main())
