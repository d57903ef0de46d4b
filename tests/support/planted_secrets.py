"""Secrets of many kinds as logs and objects have them, none of them real.

They are put together here so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json

_RANDOM = "q7Zt2kLwX9vB4nRf8YsJ3mDc6HgP1aTe5UoKiV0xWbQzE7rNhMy2SdCjGlFuAp"
AWS_SECRET = "wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
MUNGE = base64.b64encode(bytes(range(3, 131))).decode()
BODY = "\n".join((_RANDOM + "+/")[n:] + (_RANDOM + "+/")[:n] for n in range(0, 60, 7)) + "\nQx7=="


def pem(kind: str) -> str:
    """A text of RFC 7468."""
    return f"-----BEGIN {kind}-----\n{BODY}\n-----END {kind}-----"


SECRETS: dict[str, tuple[str, list[str]]] = {
    # what is planted, and the parts that must be gone
    "access key id": (f"used {'AKIA' + 'IOSFODNN7EXAMPLE'} for it", ["IOSFODNN7EXAMPLE"]),
    "temporary key id": (f"id {'ASIA' + 'IOSFODNN7EXAMPLE'}", ["IOSFODNN7EXAMPLE"]),
    "secret key by name": (f"aws_secret_access_key = {AWS_SECRET}", [AWS_SECRET[:20]]),
    "secret key alone": (f"signing with {AWS_SECRET} now", [AWS_SECRET[:20]]),
    "session token": (f"token IQoJb3JpZ2luX2VjE{_RANDOM}{_RANDOM}== end", [_RANDOM]),
    "jwt": ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLWl0", ["eyJzdWIi", "c2lnbmF0"]),
    "rsa key": (pem("RSA PRIVATE KEY"), [_RANDOM[:30], "Qx7=="]),
    "openssh key": (pem("OPENSSH PRIVATE KEY"), [_RANDOM[:30], "Qx7=="]),
    "key in a string": (json.dumps({"k": pem("PRIVATE KEY")}), [_RANDOM[:30], "Qx7=="]),
    "end of a key": (BODY + "\n-----END PRIVATE KEY-----", [_RANDOM[:30], "Qx7=="]),
    "begin of a key": ("-----BEGIN PRIVATE KEY-----\n" + BODY, [_RANDOM[:30], "Qx7=="]),
    "munge key": (MUNGE, [MUNGE[20:60]]),
    "munge key by name": ("MUNGE_KEY=short1", ["short1"]),
    "password in an address": ("mysql://slurm:hunter2@db.internal:3306/acct", ["hunter2"]),
    "password with signs": ("redis://:p@ss/w0rd@cache:6379", ["ss/w0rd", "p@ss"]),
    "hugging face": ("login hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", ["AbCdEfGhIjKl"]),
    "kubeconfig": (
        f"user:\n  client-certificate-data: {_RANDOM}\n  client-key-data: {_RANDOM}==\n  token: abc.crumbs3",
        [_RANDOM[:30], "abc.crumbs3"],
    ),
    "eks token": ("k8s-aws-v1.aHR0cHM6Ly9zdHM", ["aHR0cHM6Ly9zdHM"]),
    "bootstrap token": ("kubeadm join --token abcdef.0123456789abcdef", ["0123456789abcdef"]),
    "storage pass": ("StoragePass             = hunter2", ["hunter2"]),
    "json password": ('{"password": "hun ter2", "x": 1}', ["hun ter2", "ter2"]),
    "escaped json": (json.dumps(json.dumps({"db_password": "hunter2!"})), ["hunter2"]),
    "yaml password": ("dbPassword: 'hunter2 and more'", ["hunter2", "and more"]),
    "prose": ("the password is hunter2", ["hunter2"]),
    "option": ("--password hunter2 --user x", ["hunter2"]),
    "mysql": ("mysql -h db -u slurm -phunter2 acct", ["hunter2"]),
    "curl": ("curl -sS -u someone:hunter2 https://x", ["hunter2"]),
    "curl by a proxy": ("curl -U someone:hunter2 -x http://p https://x", ["hunter2"]),
    "authorization": ("Authorization: Bearer abcdefgh12345678", ["abcdefgh12345678"]),
    "basic": ("authorization: Basic c29tZW9uZTpodW50ZXIy", ["c29tZW9uZTpodW50ZXIy"]),
    "cookie": ("Set-Cookie: session=crumbs1; other=crumbs2", ["crumbs1", "crumbs2"]),
    "signed address": (
        f"https://b/k?X-Amz-Credential=x%2F1&X-Amz-Security-Token={_RANDOM}&X-Amz-Signature={'ab12' * 16}",
        ["ab12ab12", _RANDOM[:20]],
    ),
    "wandb": ("wandb: api key " + "0a1b2c3d4e" * 4, ["0a1b2c3d4e"]),
    "github": ("ghp_" + _RANDOM[:36], [_RANDOM[:20]]),
    "gitlab feature flags": ("glffct-" + "abcdefghij1234567890", ["abcdefghij"]),
    "gitlab runner": ("GR1348941" + "abcdefghij1234567890", ["abcdefghij"]),
    "stripe": ("rk_live_" + "abcdefghij12345678901234 or " + "sk_prod_klmnopqrst12", ["abcdefghij", "klmno"]),
    "slack hook": ("https://hooks.slack.com/services/" + "T0/B0/abcd", ["T0/B0/abcd"]),
    "openai": ("sk-" + "proj-" + _RANDOM[:24], [_RANDOM[:20]]),
    "ngc": ("nvapi-" + _RANDOM[:40], [_RANDOM[:20]]),
    "shadow": ("alice:$6$saltsalt$" + "abcdefghijk:19000:0", ["abcdefghijk"]),
    "shadow of netbsd": ("alice:$sha1$4$saltsalt$" + "abcdefghijk:19000:0", ["abcdefghijk"]),
    "shadow of windows": ("alice:$3$$" + "8846f7eaee8fb117:19000:0", ["8846f7eaee8fb117"]),
    "encoded": ("user data: " + base64.b64encode(b"PASSWORD=hunter2").decode(), ["UEFTU1dPUkQ9"]),
    "coloured": ("AK\x1b[31mIAIOSFODNN7\u200bEXAMPLE", ["IOSFODNN7", "EXAMPLE"]),
    "netrc": ("machine nvcr.io login $oauthtoken password hunter2", ["hunter2"]),
}  # fmt: skip
