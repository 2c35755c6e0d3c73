// Read decisions in JavaScript: npm install zeromq; node listen.mjs tcp://127.0.0.1:5556
import { Subscriber } from "zeromq"

const socket = new Subscriber()
socket.connect(process.argv[2] ?? "tcp://127.0.0.1:5556")
socket.subscribe("state ") // with its space: topics are whole words

for await (const [frame] of socket) {
  const text = frame.toString()
  const decision = JSON.parse(text.slice(text.indexOf(" ") + 1))
  console.log(decision.signal_s, decision.label, decision.probabilities, decision.trusted ? "trusted" : decision.reasons)
}
