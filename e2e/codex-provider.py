#!/usr/bin/env python3
"""A model provider for the real Codex CLI that knows one turn by heart.

    codex-provider.py COMMAND FINAL

Answers the first request with a call of `exec_command` that runs COMMAND, and
every later one with the message FINAL. Listens on a free port of loopback and
prints it; ends when its standard input does.
"""
import http.server
import itertools
import json
import os
import sys
import threading

command, final = sys.argv[1:]
turns = itertools.count()


def answer(turn):
    if turn == 0:
        item = {
            "type": "function_call",
            "call_id": "call-1",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": command}),
        }
    else:
        content = [{"type": "output_text", "text": final}]
        item = {"type": "message", "role": "assistant", "id": "m", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events = [
        {"type": "response.created", "response": {"id": f"r{turn}"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": f"r{turn}", "usage": usage}},
    ]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/responses":
            self.reply(404, "text/plain", b"")
            return
        self.reply(200, "text/event-stream", answer(next(turns)))

    def do_GET(self):
        self.reply(404, "text/plain", b"")

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def end_with_stdin():
    sys.stdin.buffer.read()
    os._exit(0)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_address[1], flush=True)
threading.Thread(target=end_with_stdin, daemon=True).start()
server.serve_forever()
