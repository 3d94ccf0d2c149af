"""What a run is compared with: the same requests and the same commands, and nothing is stored.

Owns:  the least a Python program does to be an agent: `bare_loop.py PORT PATH BODY FOLDER` asks,
       runs what it is told to with the output in files of FOLDER, and asks again. BODY is the file
       of the first request. Standard library only.
"""

import http.client
import json
import subprocess
import sys
from typing import Any


def main(port: str, path: str, body: str, folder: str) -> None:
    """Go on until the model calls nothing."""
    with open(body, encoding="utf-8") as file:
        asked = json.load(file)
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    while True:
        headers = {"content-type": "application/json"}
        connection.request("POST", path, json.dumps(asked).encode(), headers)
        message = json.loads(connection.getresponse().read())["choices"][0]["message"]
        asked["messages"].append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        asked["messages"] += [_answered(call, folder) for call in message["tool_calls"]]


def _answered(call: dict[str, Any], folder: str) -> dict[str, Any]:
    cmd = json.loads(call["function"]["arguments"])["cmd"]
    paths = f"{folder}/{call['id']}.out", f"{folder}/{call['id']}.err"
    with open(paths[0], "w+b") as out, open(paths[1], "w+b") as err:
        done = subprocess.run(
            ["/bin/sh", "-c", cmd],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            check=False,
        )
        out.seek(0)
        err.seek(0)
        said = {"exit_status": done.returncode, "stdout": out.read(), "stderr": err.read()}
    shown = {k: v.decode() if isinstance(v, bytes) else v for k, v in said.items()}
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(shown)}


if __name__ == "__main__":
    main(*sys.argv[1:])
