"""An agent as a plugin: it stays, and answers many turns at once. docs/plugins.md describes the protocol."""

import json
import sys
import threading

lock = threading.Lock()
stopped = {}  # turn: whether it was stopped


def send(**line):
    with lock:
        print(json.dumps(line), flush=True)


def answer(ask, stop):
    turn, text = ask["turn"], ask["message"]["text"]
    send(type="callback", turn=turn, text="Thinking…")
    for word in f"You said: {text}".split(" "):
        if stop.wait(0.05):
            break  # nobody reads on
        send(type="text", turn=turn, text=word + " ")
    send(type="turn.end", turn=turn, outcome="cancelled" if stop.is_set() else "completed")
    stopped.pop(turn, None)


for line in sys.stdin:
    told = json.loads(line)
    match told["type"]:
        case "hello":
            send(type="ready", protocol=1)
        case "turn":
            stop = stopped[told["turn"]] = threading.Event()
            threading.Thread(target=answer, args=(told, stop), daemon=True).start()
        case "cancel":
            if told["turn"] in stopped:
                stopped[told["turn"]].set()
        case "error":
            print("refused:", told["message"], file=sys.stderr, flush=True)
