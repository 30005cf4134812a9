#!/usr/bin/env python3
"""A bucket for tests: what of S3's API Tactus uses, in memory, on loopback. Signatures are verified by botocore, which is
not what made them; requests may be told to fail.

    s3_server.py PORT_FILE [REGION]   serves the bucket `test` until it is killed; 77 where botocore is not installed

Whoever tests from another process says POST /_control with JSON: {"faults": [...], "clock": SECONDS, "keys": [ID, SECRET],
"damage": KEY}, each of which may be left out; GET /_state answers with the objects' names and sizes, the open multipart
uploads and the count of requests by method.
"""
import datetime
import hashlib
import http.server
import json
import os
import pathlib
import socket
import struct
import sys
import threading
import urllib.parse
import uuid

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    botocore = None

BUCKET = "test"
KEYS = ("AKTEST", "a-secret/of+the=test")
SKEW_MAX = 900
SKIPPED = 77
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def missing():
    """Why there is no bucket to be had; empty: there is one."""
    return "" if botocore else "botocore is not installed (python3-botocore)"


class Refused(Exception):
    def __init__(self, status, code, text="refused by the test"):
        super().__init__(code)
        self.status, self.code, self.text = status, code, text


class Bucket:
    """What is kept, and what is to go wrong. A fault is a dict: `method`, `kind` (status | cut | short | corrupt | late),
    `status` and `code` of kind status, `after` requests that go well first, `times`, `key` (a part of the path or query)."""

    def __init__(self, region="us-east-1"):
        self.lock = threading.RLock()
        self.region = region
        self.keys = KEYS
        self.token = None
        self.clock = 0  # [s] that the server is ahead
        self.objects = {}  # key: (bytes, time)
        self.uploads = {}  # id: (key, {number: bytes}, time)
        self.faults = []
        self.requests = []  # method, path and query
        self.page = 1000

    def now(self):
        return datetime.datetime.utcnow() + datetime.timedelta(seconds=self.clock)

    def fault(self, method, target):
        with self.lock:
            self.requests.append(f"{method} {target}")
            for fault in self.faults:
                if fault.get("method", method) != method or fault.get("key", "") not in target or fault["times"] <= 0:
                    continue
                if fault.get("after", 0) > 0:
                    fault["after"] -= 1
                    continue
                fault["times"] -= 1
                return fault
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket = None  # of the server's subclass

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return self.bucket.now().strftime("%a, %d %b %Y %H:%M:%S GMT")

    # What botocore makes of the same request with the same key.
    def verify(self, body):
        parts = dict(part.strip().split("=", 1) for part in
                     self.headers.get("Authorization", "").removeprefix("AWS4-HMAC-SHA256").split(",") if "=" in part)
        if not {"Credential", "SignedHeaders", "Signature"} <= parts.keys():
            raise Refused(403, "AccessDenied", "no signature")
        identity, day, region, service, _ = parts["Credential"].split("/")
        if identity != self.bucket.keys[0]:
            raise Refused(403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
        if region != self.bucket.region or service != "s3":
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region '{region}' is wrong; expecting "
                                                               f"'{self.bucket.region}'")
        signed = parts["SignedHeaders"].split(";")
        want = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")} | {"host"}
        if not want <= set(signed) or "x-amz-date" not in signed or "x-amz-content-sha256" not in signed:
            raise Refused(403, "AccessDenied", f"not signed: {sorted(want - set(signed))}")
        moment = self.headers["x-amz-date"]
        apart = (datetime.datetime.strptime(moment, "%Y%m%dT%H%M%SZ") - self.bucket.now()).total_seconds()
        if abs(apart) > SKEW_MAX or day != moment[:8]:
            raise Refused(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too "
                                                       "large.")
        if self.bucket.token and self.headers.get("x-amz-security-token") != self.bucket.token:
            raise Refused(400, "ExpiredToken", "The provided token has expired.")
        request = botocore.awsrequest.AWSRequest(
            method=self.command, url=f"http://{self.headers['Host']}{self.path}", data=b"",
            headers={name: self.headers[name] for name in signed})
        request.context["timestamp"] = moment
        signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(*self.bucket.keys), "s3", region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        if signer.signature(text, request) != parts["Signature"]:
            raise Refused(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you "
                                                        "provided. Check your key and signing method.")
        if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            raise Refused(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was "
                                                            "computed.")

    def answer(self, status, body=b"", headers=(), short=0):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:len(body) - short] if short else body)

    def cut(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def refuse(self, refused):
        body = (f"{XML}<Error><Code>{refused.code}</Code><Message>{refused.text}</Message>"
                f"<RequestId>{uuid.uuid4().hex}</RequestId></Error>").encode()
        self.answer(refused.status, body, [("Content-Type", "application/xml")])

    def handle_one(self):
        path, _, query = self.path.partition("?")
        if path in ("/_control", "/_state"):
            return self.control()
        fault = self.bucket.fault(self.command, self.path)
        if fault and fault["kind"] == "cut" and self.command == "PUT":
            self.rfile.read(min(1000, int(self.headers.get("Content-Length", 0))))
            return self.cut()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fault and fault["kind"] == "cut":
            return self.cut()
        try:
            self.verify(body)
            if fault and fault["kind"] == "status":
                raise Refused(fault["status"], fault["code"])
            name, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
            if name != BUCKET:
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            with self.bucket.lock:
                self.serve(key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)), body, fault)
        except Refused as refused:
            self.refuse(refused)
        return None

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

    def serve(self, key, query, body, fault):
        if fault and fault["kind"] == "late":  # done, and nobody is told
            self.wfile = open(os.devnull, "wb")
        if self.command == "GET" and not key:
            self.list_uploads(query) if "uploads" in query else self.list_objects(query)
        elif self.command in ("GET", "HEAD"):
            self.get(key, fault)
        elif self.command == "PUT":
            self.put(key, query, body)
        elif self.command == "POST":
            self.begin(key) if "uploads" in query else self.complete(query, body)
        elif "uploadId" in query:
            self.bucket.uploads.pop(query["uploadId"], None)
            self.answer(204)
        else:
            self.bucket.objects.pop(key, None)
            self.answer(204)
        if fault and fault["kind"] == "late":
            self.cut()

    def get(self, key, fault):
        if key not in self.bucket.objects:
            raise Refused(404, "NoSuchKey", "The specified key does not exist.")
        content = self.bucket.objects[key][0]
        if self.command == "HEAD":
            return self.answer(200, headers=[("Content-Length", str(len(content)))])
        status, headers, begin, end = 200, [], 0, len(content)
        if "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            begin, end = int(first), min(len(content), int(last) + 1)
            if begin >= len(content):
                raise Refused(416, "InvalidRange", "The requested range is not satisfiable")
            status, headers = 206, [("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")]
        part = content[begin:end]
        if fault and fault["kind"] == "corrupt":
            part = bytes([part[0] ^ 1]) + part[1:]
        if fault and fault["kind"] == "short":
            self.answer(status, part, headers, short=max(1, len(part) // 2))
            return self.cut()
        return self.answer(status, part, headers)

    def put(self, key, query, body):
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if "partNumber" not in query:
            if self.headers.get("If-None-Match") == "*" and key in self.bucket.objects:
                raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
            self.bucket.objects[key] = (body, self.bucket.now())
        elif query["uploadId"] not in self.bucket.uploads:
            raise Refused(404, "NoSuchUpload", "The specified upload does not exist.")
        else:
            self.bucket.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
        self.answer(200, headers=[("ETag", tag)])

    def begin(self, key):
        upload = uuid.uuid4().hex
        self.bucket.uploads[upload] = (key, {}, self.bucket.now())
        self.answer(200, (f"{XML}<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key><UploadId>{upload}"
                          "</UploadId></InitiateMultipartUploadResult>").encode())

    def complete(self, query, body):
        if query["uploadId"] not in self.bucket.uploads:
            raise Refused(404, "NoSuchUpload", "The specified upload does not exist.")
        key, parts, _ = self.bucket.uploads[query["uploadId"]]
        said = body.decode()
        numbers = [int(piece.split("<")[0]) for piece in said.split("<PartNumber>")[1:]]
        tags = [piece.split("<")[0] for piece in said.split("<ETag>")[1:]]
        tags = [tag.replace("&quot;", '"') for tag in tags]
        right = [f'"{hashlib.md5(parts.get(number, b"")).hexdigest()}"' for number in numbers]
        if numbers != sorted(parts) or tags != right:
            raise Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
        if any(len(parts[number]) < 5 << 20 for number in numbers[:-1]):
            raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size.")
        self.bucket.objects[key] = (b"".join(parts[number] for number in numbers), self.bucket.now())
        del self.bucket.uploads[query["uploadId"]]
        self.answer(200, (f"{XML}<CompleteMultipartUploadResult><Key>{key}</Key><ETag>&quot;x-{len(numbers)}&quot;</ETag>"
                          "</CompleteMultipartUploadResult>").encode())

    def list_objects(self, query):
        after = query.get("continuation-token", query.get("start-after", ""))
        names = sorted(name for name in self.bucket.objects if name.startswith(query.get("prefix", "")) and name > after)
        page = names[:min(self.bucket.page, int(query.get("max-keys", 1000)))]
        text = "".join(
            f"<Contents><Key>{name}</Key><LastModified>{self.bucket.objects[name][1]:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<Size>{len(self.bucket.objects[name][0])}</Size></Contents>" for name in page)
        more = len(page) < len(names)
        text += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{page[-1]}</NextContinuationToken>"
        self.answer(200, f"{XML}<ListBucketResult>{text}</ListBucketResult>".encode())

    def list_uploads(self, query):
        text = "".join(f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId><Initiated>{begun:%Y-%m-%dT%H:%M:%S.000Z}"
                       "</Initiated></Upload>" for upload, (key, _, begun) in self.bucket.uploads.items()
                       if key.startswith(query.get("prefix", "")))
        self.answer(200, f"{XML}<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>{text}"
                         "</ListMultipartUploadsResult>".encode())

    def control(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket = self.bucket
        with bucket.lock:
            if self.command == "POST":
                order = json.loads(body)
                bucket.faults = order.get("faults", bucket.faults)
                bucket.clock = order.get("clock", bucket.clock)
                bucket.keys = tuple(order.get("keys", bucket.keys))
                bucket.token = order.get("token", bucket.token)
                bucket.page = order.get("page", bucket.page)
                if "damage" in order:
                    content, when = bucket.objects[order["damage"]]
                    bucket.objects[order["damage"]] = (bytes([content[0] ^ 1]) + content[1:], when)
                for key, text in order.get("put", {}).items():
                    bucket.objects[key] = (text.encode(), bucket.now())
                for key in order.get("remove", []):
                    bucket.objects.pop(key, None)
                for key, age in order.get("begin", {}).items():
                    bucket.uploads[uuid.uuid4().hex] = (key, {}, bucket.now() - datetime.timedelta(seconds=age))
            methods = [request.split()[0] for request in bucket.requests]
            state = {"objects": {key: len(content) for key, (content, _) in bucket.objects.items()},
                     "uploads": sorted(key for key, _, _ in bucket.uploads.values()),
                     "requests": {method: methods.count(method) for method in set(methods)}}
        self.answer(200, json.dumps(state).encode(), [("Content-Type", "application/json")])


class Server:
    """Serves from its making on, on a thread."""

    def __init__(self, region="us-east-1"):
        self.bucket = Bucket(region)
        handler = type("BucketHandler", (Handler,), {"bucket": self.bucket})
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def environment(self, **more):
        return dict(os.environ, AWS_ACCESS_KEY_ID=self.bucket.keys[0], AWS_SECRET_ACCESS_KEY=self.bucket.keys[1], **more)

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


def main():
    if missing():
        print(f"skipped: {missing()}")
        return SKIPPED
    server = Server(*sys.argv[2:])
    path = pathlib.Path(sys.argv[1])
    path.with_suffix(".new").write_text(server.endpoint.removeprefix("http://"))
    path.with_suffix(".new").rename(path)
    server.thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
