"""A channel as a plugin: a mailbox of files. docs/plugins.md describes the protocol.

What lies in $MAILBOX/in/CHAT/ID.txt is said in the chat, under that id; the answers appear whole, as $MAILBOX/out/CHAT/TURN.txt. A file of
one name is one letter, however often it is written, so nothing is doubled; and a position is kept only where every turn before it is out,
so nothing is lost.
"""

import json
import os
import pathlib
import sys
import threading

box = pathlib.Path(os.environ["MAILBOX"])
lock = threading.Lock()
turns = {}  # by chat: turns that have not ended, with the texts of their messages' parts


def send(**line):
    with lock:
        print(json.dumps(line), flush=True)


def post(chat, turn, text):
    out = box / "out" / chat
    out.mkdir(parents=True, exist_ok=True)
    new = out / f".{turn}"
    new.write_text(text, encoding="utf-8")
    new.rename(out / f"{turn}.txt")


def follow(chat, event):
    """Fold one event into the turns that are open; post a turn that ends."""
    open_turns = turns.setdefault(chat, {})
    turn, kind = event.get("turn"), event["type"]
    if kind in ("turn.queue", "turn.start"):
        open_turns.setdefault(turn, {})
    parts = open_turns.get(turn)
    if parts is None:
        return
    key = (event.get("message"), event.get("part"))
    if kind == "part.start" and event["kind"] in ("text", "status"):
        parts[key] = ""
    elif kind == "part.append" and key in parts:
        parts[key] += event["text"]
    elif kind == "part.replace" and key in parts:
        parts[key] = event["text"]
    elif kind == "turn.end":
        try:
            post(chat, turn, "\n\n".join(text for text in parts.values() if text))
        except OSError as e:  # such as a full disk; the answer is given up, and the operator sees why
            send(type="failed", chat=chat, turn=turn, error=str(e))
        del open_turns[turn]


def deliver(chat, frame):
    if frame["type"] == "snapshot":  # the position was lost: what has ended is written again, under the same names
        shown = frame["transcript"]
        turns[chat] = {turn["id"]: {} for turn in shown.get("turns", []) if turn["state"] != "ended"}
        for message in shown.get("messages", []):
            parts = turns[chat].get(message.get("turn"))
            for part in message.get("parts", []):
                if parts is not None and message["role"] == "assistant" and part["kind"] in ("text", "status"):
                    parts[message["id"], part["id"]] = part.get("text", "")
    for event in frame.get("events", []):
        follow(chat, event)
    if not turns.get(chat):
        send(type="keep", chat=chat, cursor=frame["cursor"])
    send(type="next", chat=chat)


def collect(stop):
    """Bring what people say. A letter is taken away once the gateway has it."""
    while not stop.wait(0.1):
        for letter in sorted(box.glob("in/*/*.txt")):
            message = {"text": letter.read_text(encoding="utf-8")}
            send(type="command", id=letter.stem, chat=letter.parent.name, command={"type": "send", "message": message})


stop = threading.Event()
for line in sys.stdin:
    told = json.loads(line)
    match told["type"]:
        case "hello":
            send(type="ready", protocol=1, kind="channel", capabilities={"idempotent": True})  # one name, one letter
            threading.Thread(target=collect, args=(stop,), daemon=True).start()
        case "open" | "closed":
            turns[told["chat"]] = {}
        case "deliver":
            deliver(told["chat"], told["frame"])
        case "ack":
            (box / "in" / told["chat"] / f"{told['id']}.txt").unlink(missing_ok=True)
        case "rejected" | "error":
            print("refused:", told.get("error") or told.get("message"), file=sys.stderr, flush=True)
stop.set()
