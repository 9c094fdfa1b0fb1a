"""An agent of the Agent Client Protocol without a model: a prompt is a JSON list of the messages that it sends.

Requests get numbers. An answer is read once the updates behind its request are sent. The turn's result has the answers.
The arguments are the agent's name for itself, and the session's id.
"""

import json
import sys

NAME, SESSION = sys.argv[1:3]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def load(messages):
    for message in messages:
        send(message)
    return {}


def play(prompt):
    answers, asked = [], 0
    for message in [*json.loads(prompt[-1]["text"]), None]:
        if asked > len(answers) and (message is None or message["method"] != "session/update"):
            answers.append(json.loads(sys.stdin.readline()))
        if message is None:
            break
        if message["method"] != "session/update":
            asked += 1
            message["id"] = asked
        send(message)
    return {"stopReason": "end_turn", "answers": answers, "prompt": prompt}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        known = {
            "initialize": lambda params: {"protocolVersion": 1, "agentInfo": {"name": NAME}},
            "session/new": lambda params: {"sessionId": SESSION},
            "session/load": lambda params: load(params["messages"]),
            "session/prompt": lambda params: play(params["prompt"]),
        }
        send({"id": request["id"], "result": known.get(request["method"], lambda params: {})(request["params"])})
sys.exit(7)
