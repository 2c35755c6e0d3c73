"""Read every decision in Python: pip install pyzmq; python subscribe.py tcp://127.0.0.1:5556."""

import json
import sys

import zmq

socket = zmq.Context.instance().socket(zmq.SUB)
socket.setsockopt(zmq.SUBSCRIBE, b"state ")  # with its space: topics are whole words
socket.connect(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5556")
while True:
    decision = json.loads(socket.recv().partition(b" ")[2])
    print(decision["signal_s"], decision["label"], decision["probabilities"], decision["reasons"], flush=True)
