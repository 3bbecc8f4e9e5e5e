# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server: GET /health after WARM seconds, anything else after DELAY seconds; each POST is one line of output."""
import base64
import hashlib
import http.server
import os
import sys
import time

DELAY, WARM, PORT = float(os.environ.get("DELAY", "0.03")), float(os.environ.get("WARM", "0")), int(os.environ["PORT"])
BEGAN = time.monotonic()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, text):
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            return self.answer(200 if time.monotonic() - BEGAN >= WARM else 503, "ok\n")
        if self.path == "/exit":
            self.answer(200, "bye\n")
            os._exit(0)
        if self.path == "/socket":
            return self.echo()
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for _ in range(20):
                self.wfile.write(f"data: {time.time():.6f}\n\n".encode())
                time.sleep(0.05)
            self.close_connection = True
            return None
        if self.path == "/generate":  # 20 seconds of events
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number in range(40):
                self.wfile.write(f"data: {number} {os.uname().nodename}\n\n".encode())
                time.sleep(0.5)
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True
            return None
        if self.path.startswith("/guarded") and self.headers.get("X-Probe") != "it's 100% us":
            return self.answer(401, "no\n")
        time.sleep(DELAY)
        return self.answer(200, f"{os.uname().nodename} {os.getpid()} {os.environ.get('VERSION', '')}\n")

    def echo(self):
        """A WebSocket whose frames come back as they are."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while data := self.connection.recv(4096):
            self.connection.sendall(data)

    def do_POST(self):
        said = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/probe":
            good = said == b'{"model":"it\'s","max_tokens":1}' and self.headers["Content-Type"] == "application/json"
            return self.answer(200 if good else 400, "")
        print(f"POST {self.path}", flush=True)
        time.sleep(DELAY)
        return self.answer(200, f"{os.uname().nodename} {os.getpid()}\n")

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer.request_queue_size = 256
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
sys.exit(1)
