"""Read the newest decision from PsychoPy, or any program with pyzmq, without ever waiting for it."""

import json
import sys
import time

import zmq

socket = zmq.Context.instance().socket(zmq.SUB)
socket.setsockopt(zmq.CONFLATE, 1)  # only the newest decision is kept, however slowly they are taken
socket.setsockopt(zmq.SUBSCRIBE, b"state ")  # with its space: topics are whole words
socket.connect(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5556")


def newest_decision() -> dict | None:
    """Return the newest decision; None if none came since the last call, as when the amplifier has stalled."""
    return json.loads(socket.recv().partition(b" ")[2]) if socket.poll(0) else None


while True:  # your drawing loop
    decision = newest_decision()
    if decision is not None and decision["trusted"]:
        print(decision["label"], decision["probabilities"], flush=True)
    time.sleep(1 / 60)  # win.flip()
