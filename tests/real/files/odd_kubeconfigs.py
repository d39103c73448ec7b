"""Kubeconfigs that are odd in one respect each.

`$server`, `$authority` and `$foreign` (base64 of PEM), `$token` and `$folder` stand for values of a server. The folder
has the files `token` (the right one), `wrong` (another token), `empty`, `ca.crt` and `plugin`.
"""

from __future__ import annotations

from typing import Final

_PARTS: Final = {
    "head": "apiVersion: v1\nkind: Config\n",
    "current": "current-context: one\n",
    "context": "    cluster: c\n    user: u\n    namespace: shop\n",
    "server": "    server: $server\n",
    "authority": "    certificate-authority-data: $authority\n",
    "cluster": "",
    "user": "    token: $token\n",
    "end": "",
}


def kubeconfig(**parts: str) -> str:
    """Return an ordinary kubeconfig with other parts."""
    text = {**_PARTS, **parts}
    return (
        f"{text['head']}{text['current']}contexts:\n- name: one\n  context:\n{text['context']}"
        f"clusters:\n- name: c\n  cluster:\n{text['server']}{text['authority']}{text['cluster']}"
        f"users:\n- name: u\n  user:\n{text['user']}{text['end']}"
    )


def _cluster(line: str) -> str:
    return kubeconfig(cluster=f"    {line}\n")


def _foreign(line: str) -> str:
    return kubeconfig(authority="    certificate-authority-data: $foreign\n", cluster=f"    {line}\n")


def _insecure(line: str) -> str:
    return kubeconfig(authority="", cluster=f"    {line}\n")


def _user(*lines: str) -> str:
    return kubeconfig(user="".join(f"    {line}\n" for line in lines))


def _more(line: str) -> str:
    return kubeconfig(user=f"    token: $token\n    {line}\n")


def _namespace(line: str) -> str:
    return kubeconfig(context=f"    cluster: c\n    user: u\n    {line}\n")


def _plugin(*lines: str) -> str:
    head = ("exec:", "  apiVersion: client.authentication.k8s.io/v1", "  command: $folder/plugin")
    return _user(*head, *(f"  {line}" for line in lines))


ODD: Final[dict[str, str]] = {
    "ordinary": kubeconfig(),
    # Bools
    "insecure: quoted false": _foreign('insecure-skip-tls-verify: "false"'),
    "insecure: quoted true": _insecure('insecure-skip-tls-verify: "true"'),
    "insecure: false": _foreign("insecure-skip-tls-verify: false"),
    "insecure: no": _foreign("insecure-skip-tls-verify: no"),
    "insecure: off": _foreign("insecure-skip-tls-verify: off"),
    "insecure: n": _foreign("insecure-skip-tls-verify: n"),
    "insecure: 0": _foreign("insecure-skip-tls-verify: 0"),
    "insecure: 1": _insecure("insecure-skip-tls-verify: 1"),
    "insecure: null": _foreign("insecure-skip-tls-verify: null"),
    "insecure: nothing": _foreign("insecure-skip-tls-verify:"),
    "insecure: a list": _foreign("insecure-skip-tls-verify: []"),
    "insecure: a text": _foreign("insecure-skip-tls-verify: nope"),
    "insecure: another case of the name": _foreign("Insecure-Skip-TLS-Verify: true"),
    "insecure: true": _insecure("insecure-skip-tls-verify: true"),
    "insecure: yes": _insecure("insecure-skip-tls-verify: yes"),
    "insecure: y": _insecure("insecure-skip-tls-verify: y"),
    "insecure: on": _insecure("insecure-skip-tls-verify: on"),
    "insecure: tagged text": _insecure("insecure-skip-tls-verify: !!str true"),
    "insecure: tagged bool in quotes": _insecure('insecure-skip-tls-verify: !!bool "true"'),
    "insecure: true and an authority": _foreign("insecure-skip-tls-verify: true"),
    "insecure: twice, the last one true": _insecure(
        "insecure-skip-tls-verify: false\n    insecure-skip-tls-verify: true"
    ),
    "compression: quoted": _cluster('disable-compression: "false"'),
    # Authorities
    "authority: foreign": _foreign("tls-server-name: localhost"),
    "authority: none": _insecure("tls-server-name: localhost"),
    "authority: a file": kubeconfig(authority="    certificate-authority: ca.crt\n"),
    "authority: file and data": _cluster("certificate-authority: ca.crt"),
    "authority: missing file": kubeconfig(authority="    certificate-authority: missing.crt\n"),
    "authority: no base64": kubeconfig(authority="    certificate-authority-data: '***'\n"),
    "authority: no PEM": kubeconfig(authority="    certificate-authority-data: aGVsbG8=\n"),
    "authority: a number": kubeconfig(authority="    certificate-authority-data: 1234\n"),
    "authority: empty": kubeconfig(authority="    certificate-authority-data: ''\n"),
    "authority: a block": kubeconfig(authority="    certificate-authority-data: |\n      $authority\n"),
    # Servers and clusters
    "server: missing": kubeconfig(server=""),
    "server: a number": kubeconfig(server="    server: 6443\n"),
    "server: null": kubeconfig(server="    server: null\n"),
    "server name: a number": _cluster("tls-server-name: 1"),
    "server name: another": _cluster("tls-server-name: other.example.com"),
    "proxy: a bool": _cluster("proxy-url: false"),
    "extensions: a text": _cluster("extensions: none"),
    "extensions: of another program": _cluster("extensions: [{name: example.com, extension: {last-update: x}}]"),
    "unknown fields": _cluster("colour: {red: 1}"),
    # Documents
    "documents: a separator at the end": kubeconfig(end="---\n"),
    "documents: an end at the end": kubeconfig(end="...\n"),
    "documents: a second one": kubeconfig(end="---\nkind: Nonsense\nusers: 1\n"),
    "documents: a second one that is no YAML": kubeconfig(end="---\n[}\n"),
    "documents: a separator at the start": "---\n" + kubeconfig(),
    "documents: an empty first one": "---\n---\n" + kubeconfig(),
    "documents: no YAML": "users: [",
    "documents: a list": "- a\n",
    "documents: a text": "nothing\n",
    "documents: another kind": kubeconfig(head="apiVersion: v1\nkind: Secret\n"),
    "documents: another version": kubeconfig(head="apiVersion: v2\nkind: Config\n"),
    "documents: no kind": kubeconfig(head=""),
    # Contexts
    "current: none": kubeconfig(current=""),
    "current: a number": kubeconfig(current="current-context: 1\n"),
    "current: unknown": kubeconfig(current="current-context: two\n"),
    "context: without a cluster": kubeconfig(context="    user: u\n"),
    "context: of an unknown cluster": kubeconfig(context="    cluster: d\n    user: u\n"),
    "context: of an unknown user": kubeconfig(context="    cluster: c\n    user: v\n"),
    "contexts: a mapping": kubeconfig(end="contexts: {}\n"),
    "contexts: one that is null": kubeconfig(end="").replace("contexts:\n", "contexts:\n- null\n"),
    "contexts: one without a name": kubeconfig().replace("contexts:\n", "contexts:\n- context: {cluster: x}\n"),
    "contexts: two of a name": kubeconfig().replace("clusters:\n", "- {name: one, context: {cluster: x}}\nclusters:\n"),
    "clusters: two of a name": kubeconfig().replace("users:\n", "- name: c\n  cluster: {server: x}\nusers:\n"),
    "users: two of a name": kubeconfig(end="- name: u\n  user: {token: x}\n"),
    "users: another one with a wrong type": kubeconfig(end="- name: v\n  user: {token: 1}\n"),
    "users: a name that is a number": kubeconfig(end="- name: 7\n  user: {}\n"),
    # Namespaces
    "namespace: none": kubeconfig(context="    cluster: c\n    user: u\n"),
    "namespace: null": _namespace("namespace: null"),
    "namespace: ~": _namespace("namespace: ~"),
    "namespace: tagged null": _namespace("namespace: !!null shop"),
    "namespace: tagged text": _namespace("namespace: !!str shop"),
    "namespace: null in quotes": _namespace('namespace: "null"'),
    "namespace: a number": _namespace("namespace: 1234"),
    "namespace: a number in quotes": _namespace('namespace: "1234"'),
    "namespace: n": _namespace("namespace: n"),
    "namespace: 12:30": _namespace("namespace: 12:30"),
    "namespace: an anchor and a merge": _namespace("<<: &b {namespace: merged}"),
    # Tokens
    "token: a number": _user("token: 1234"),
    "token: null": _user("token: null", "tokenFile: token"),
    "token: wrong": _user("token: nonsense"),
    "token: twice, the last one right": _user("token: nonsense", "token: $token"),
    "token file": _user("tokenFile: token"),
    "token file: before the token": _user("token: nonsense", "tokenFile: $folder/token"),
    "token file: with a wrong one": _user("token: $token", "tokenFile: $folder/wrong"),
    "token file: missing, and a token": _user("token: $token", "tokenFile: $folder/missing"),
    "token file: empty, and a token": _user("token: $token", "tokenFile: $folder/empty"),
    "token file: missing": _user("tokenFile: $folder/missing"),
    "token file: empty": _user("tokenFile: $folder/empty"),
    "token and password": _more("username: a\n    password: b"),
    "token and user name": _more("username: a"),
    "password: a number": _user("username: a", "password: 1"),
    # Certificates of clients
    "certificate: without a key": _more("client-certificate: ca.crt"),
    "certificate: file and data": _more(
        "client-certificate: ca.crt\n    client-certificate-data: $authority\n    client-key: ca.crt"
    ),
    "certificate: no base64": _more("client-certificate-data: '***'\n    client-key-data: '***'"),
    # Impersonation
    "impersonation": _more("as: jane"),
    "impersonation: a number": _more("as: 1"),
    "impersonation: groups without a user": _more("as-groups: [a]"),
    "impersonation: a uid without a user": _more("as-uid: a"),
    "impersonation: extra without a user": _more("as-user-extra: {a: [b]}"),
    "impersonation: a group that is a text": _more("as: jane\n    as-groups: a"),
    "impersonation: extra with a number": _more("as: jane\n    as-user-extra: {a: [1]}"),
    # Plugins
    "plugin": _plugin("interactiveMode: Never"),
    "plugin: cluster info in quotes": _plugin("interactiveMode: Never", 'provideClusterInfo: "false"'),
    "plugin: cluster info": _plugin("interactiveMode: Never", "provideClusterInfo: true"),
    "plugin: cluster info: no": _plugin("interactiveMode: Never", "provideClusterInfo: no"),
    "plugin: arguments that are a text": _plugin("interactiveMode: Never", "args: a b"),
    "plugin: an argument that is a number": _plugin("interactiveMode: Never", "args: [1]"),
    "plugin: no arguments": _plugin("interactiveMode: Never", "args: null", "env: null"),
    "plugin: a variable that is a number": _plugin("interactiveMode: Never", "env: [{name: A, value: 1}]"),
    "plugin: a variable without a name": _plugin("interactiveMode: Never", "env: [{value: a}]"),
    "plugin: a mapping of variables": _plugin("interactiveMode: Never", "env: {A: a}"),
    "plugin: an unknown mode": _plugin("interactiveMode: Sometimes"),
    "plugin: no version": _user("exec:", "  command: $folder/plugin"),
    "plugin: no command": _user("exec:", "  apiVersion: client.authentication.k8s.io/v1"),
    "plugin: null": _more("exec: null"),
    "plugin: a text": _more("exec: plugin"),
    "plugin and provider": _plugin("interactiveMode: Never\n    auth-provider: {name: oidc}"),
    "provider: a setting that is a bool": _user("auth-provider: {name: oidc, config: {client-id: true}}"),
}  # fmt: skip
