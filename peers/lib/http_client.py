"""Plain HTTP requests to the server of a kubeconfig, to see its answers as they are."""

import base64
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import time
import urllib.parse

import kubectl


class Client:
    """One server. The kubeconfig is read by kubectl, so whatever form it has is understood."""

    def __init__(self, kubeconfig: str):
        words = [kubectl.program(), "--kubeconfig", kubeconfig, "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
        view = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        cluster, user = view["clusters"][0]["cluster"], view["users"][0]["user"]
        self.url = urllib.parse.urlsplit(cluster["server"])
        self.headers = {"Authorization": f"Bearer {user['token']}"} if user.get("token") else {}
        self.context = tls(cluster, user) if self.url.scheme == "https" else None

    def request(self, method: str, path: str, body=None, content: str = "application/json", accept: str = "application/json", timeout: float = 30):
        """Status, content type and body. A body that isn't bytes or text is sent as JSON. A server that says it isn't ready
        for this yet (429) is asked again."""
        for _ in range(10):
            answer = self.once(method, path, body, content, accept, timeout)
            if answer[0] != 429:
                break
            time.sleep(0.5)
        return answer

    def once(self, method, path, body, content, accept, timeout):
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        headers = {**self.headers, "Accept": accept, **({"Content-Type": content} if body is not None else {})}
        place = (self.url.hostname, self.url.port)
        if self.context:
            connection = http.client.HTTPSConnection(*place, context=self.context, timeout=timeout)
        else:
            connection = http.client.HTTPConnection(*place, timeout=timeout)
        try:
            connection.request(method, urllib.parse.quote(path, safe="/?&=%,:+-._~!*'()"), body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()
        finally:
            connection.close()


def tls(cluster, user):
    """Trusts the cluster's authority alone, and shows the user's certificate if there is one."""
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if user.get("client-certificate-data"):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
        try:
            context.load_cert_chain(file.name)
        finally:
            os.unlink(file.name)
    return context
