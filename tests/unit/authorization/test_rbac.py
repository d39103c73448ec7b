"""Users and their rights, as an API server answers about them, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections import Counter
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client
from aioinformer.authorization import (
    EVERYBODY,
    AccessDenied,
    Rbac,
    ReviewUnavailable,
    Unauthenticated,
    User,
    permitted,
)
from aioinformer.errors import OptionError
from aioinformer.models import core_v1, rbac_v1
from tests.support.scripted_transport import Answer, refusal, unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer import Resource
    from aioinformer.transport import HttpRequest

JANE = User("jane", "u-1", ("shop", "system:authenticated"), {"scopes": ("read",)})
PODS = core_v1.PODS


class Reviewer:
    """An API server that reviews tokens and rights.

    Attributes:
        users: the users of tokens, as a TokenReview describes them.
        audiences: what TokenReviews say the token is for.
        rights: what users may do: name, verb, resource or path, namespace.
        failure: the answer to everything, if there is one.
        delay: seconds until an answer.
        reviews: the bodies of all requests, in order.
        times: when they came.
    """

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {"t-jane": {"username": "jane", "uid": "u-1", "groups": ["shop"]}}
        self.audiences: list[str] | None = None
        self.rights: set[tuple[str, str, str, str]] = set()
        self.failure: Answer | Exception | None = None
        self.delay = 0.1
        self.reviews: list[dict[str, Any]] = []
        self.times: list[float] = []

    async def request(self, request: HttpRequest) -> Answer:
        review = json.loads(request.body or b"")
        self.reviews.append(review)
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.delay)
        if isinstance(self.failure, Exception):
            raise self.failure
        if self.failure is not None:
            return self.failure
        status = self._token(review["spec"]) if review["kind"] == "TokenReview" else self._access(review["spec"])
        return Answer(201, json.dumps(review | {"status": status}).encode())

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        if spec["token"] not in self.users:
            return {"user": {}, "error": f"[invalid bearer token {spec['token']}]"}
        audiences = spec["audiences"] if self.audiences is None else self.audiences
        return {"authenticated": True, "user": self.users[spec["token"]], "audiences": audiences}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        asked = spec.get("resourceAttributes") or spec["nonResourceAttributes"]
        wanted = (spec["user"], asked["verb"], asked.get("resource", asked.get("path")), asked.get("namespace", ""))
        return {"allowed": wanted in self.rights}


@pytest.fixture
def server() -> Reviewer:
    return Reviewer()


def rbac(server: Reviewer, **options: Any) -> Rbac:
    return Rbac(Client(server), **({"audiences": ["dashboard"]} | options))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# Users.


async def test_token_is_reviewed_for_the_audiences(server: Reviewer) -> None:
    server.users["t-jane"]["extra"] = {"b": ["2"], "a": ["1", "0"]}
    found = await rbac(server).authenticate(bearer("t-jane"), "10.1.1.1")
    assert found == User("jane", "u-1", ("shop",), {"b": ("2",), "a": ("1", "0")})
    assert server.reviews[0]["spec"] == {"token": "t-jane", "audiences": ["dashboard"]}


@pytest.mark.parametrize("audiences", [[], ["https://kubernetes.default.svc"]])
async def test_token_that_a_server_accepts_for_other_audiences_is_refused(
    server: Reviewer, audiences: list[str]
) -> None:
    server.audiences = audiences
    with pytest.raises(Unauthenticated, match="not for the audience 'dashboard'"):
        await rbac(server).authenticate(bearer("t-jane"), None)


async def test_refused_token_is_not_quoted(server: Reviewer) -> None:
    with pytest.raises(Unauthenticated, match="may have expired") as refused:
        await rbac(server).authenticate(bearer("t-nobody"), None)
    assert "t-nobody" not in str(refused.value)
    assert refused.value.status == 401


async def test_request_without_a_token_names_the_audience(server: Reviewer) -> None:
    with pytest.raises(Unauthenticated, match="audience 'dashboard' is required"):
        await rbac(server).authenticate({}, None)
    assert not server.reviews


async def test_tokens_are_kept_as_hashes_only(server: Reviewer) -> None:
    token = "".join(["t-", "secret"])
    server.users[token] = {"username": "joe"}
    who = rbac(server)
    await who.authenticate(bearer(token), None)
    server.users.clear()
    server.reviews.clear()
    texts = set()
    seen = {id(who)}
    rest: list[Any] = [who]
    while rest:
        for each in gc.get_referents(rest.pop()):
            if isinstance(each, (str, bytes)):
                texts.add(each)
            elif id(each) not in seen and not isinstance(each, (type, ModuleType, FunctionType, Reviewer)):
                seen.add(id(each))
                rest.append(each)
    assert "joe" in texts
    assert not any(each in (token, token.encode(), f"Bearer {token}") for each in texts)


async def test_review_of_a_token_counts_for_half_of_the_ttl(server: Reviewer) -> None:
    who = rbac(server, ttl=10.0)
    await who.authenticate(bearer("t-jane"), None)
    await asyncio.sleep(4.8)
    await who.authenticate(bearer("t-jane"), None)
    assert len(server.reviews) == 1
    del server.users["t-jane"]
    await asyncio.sleep(0.2)
    with pytest.raises(Unauthenticated):
        await who.authenticate(bearer("t-jane"), None)


async def test_header_counts_from_named_peers_only(server: Reviewer) -> None:
    who = rbac(server, audiences=(), user_header="X-Remote-User", from_peers=["10.0.0.7"])
    headers = {"x-remote-user": "jane"}
    assert await who.authenticate(headers, "10.0.0.7") == User("jane", groups=("system:authenticated",))
    for peer in ("10.0.0.8", None):
        with pytest.raises(Unauthenticated, match="means nothing from"):
            await who.authenticate(headers, peer)
    with pytest.raises(AccessDenied, match="another origin"):
        await who.authenticate(headers | {"sec-fetch-site": "cross-site"}, "10.0.0.7")


async def test_function_gets_no_header_of_strangers(server: Reviewer) -> None:
    seen: list[dict[str, str]] = []

    async def session_of(headers: Any, peer: str | None) -> User | None:
        seen.append(dict(headers))
        return JANE if headers.get("cookie") == "session=1" else None

    who = rbac(server, audiences=(), user_header="x-user", from_peers=["10.0.0.7"], authenticate=session_of)
    assert await who.authenticate({"cookie": "session=1", "x-user": "admin"}, "10.0.0.8") == JANE
    assert seen == [{"cookie": "session=1"}]
    with pytest.raises(Unauthenticated):
        await who.authenticate({"cookie": "session=2"}, None)
    with pytest.raises(AccessDenied):
        await who.authenticate({"cookie": "session=1", "sec-fetch-site": "cross-site"}, None)


def session_of(headers: Mapping[str, str], peer: str | None) -> User | None:
    return JANE if headers.get("cookie") == "session=1" else None


PROXY = {"user_header": "X-User", "groups_header": "X-Groups", "from_peers": ["10.0.0.7"]}
TOKENS = {"audiences": ["dashboard", "web"]}
FUNCTION = {"authenticate": session_of}


@pytest.mark.parametrize(
    ("options", "headers", "peer", "found"),
    [
        (TOKENS, bearer("t-jane"), None, "jane u-1 shop"),
        (TOKENS | FUNCTION, {"cookie": "session=1"}, None, "jane u-1 shop"),
        (TOKENS | FUNCTION, bearer("t-jane"), None, "jane u-1 shop"),
        (PROXY, {"x-user": "ann", "x-groups": "ops"}, "10.0.0.7", "ann  ops"),
        (PROXY | TOKENS, {"x-user": "ann"} | bearer("t-jane"), "10.0.0.7", "ann  "),
        (PROXY | TOKENS, {"x-user": "ann"} | bearer("t-jane"), "10.0.0.8", "jane u-1 shop"),
        (PROXY | TOKENS, bearer("t-jane"), "10.0.0.7", "jane u-1 shop"),
    ],
)
async def test_first_proof_of_a_request_names_the_user(
    server: Reviewer, options: dict[str, Any], headers: dict[str, str], peer: str | None, found: str
) -> None:
    user = await Rbac(Client(server), **options).authenticate(headers, peer)
    groups = ",".join(each for each in user.groups if each != "system:authenticated")
    assert f"{user.name} {user.uid} {groups}" == found


@pytest.mark.parametrize(
    ("options", "headers", "peer", "missing"),
    [
        (TOKENS, {}, None, "audience 'dashboard' or 'web' is required"),
        (TOKENS, bearer("t-joe"), None, "does not accept this token for the audience 'dashboard' or 'web'"),
        (TOKENS | FUNCTION, bearer("t-joe"), None, "does not accept this token"),
        (TOKENS | FUNCTION, {}, None, "audience 'dashboard' or 'web' is required"),
        (FUNCTION, bearer("t-jane"), None, "does not know the sender"),
        (FUNCTION | PROXY, {"x-user": "ann"}, "10.0.0.8", "does not know the sender"),
        (PROXY, {"x-user": "ann"}, "10.0.0.8", "the header x-user means nothing from 10.0.0.8"),
        (PROXY, {"x-user": "ann"}, None, "the header x-user means nothing from an unknown peer"),
        (PROXY, {}, "10.0.0.7", "the proxy names no user in the header x-user"),
        (PROXY, bearer("t-jane"), "10.0.0.7", "the proxy names no user in the header x-user"),
    ],
)
async def test_request_without_a_proof_names_what_is_missing(
    server: Reviewer, options: dict[str, Any], headers: dict[str, str], peer: str | None, missing: str
) -> None:
    with pytest.raises(Unauthenticated, match=missing) as refused:
        await Rbac(Client(server), **options).authenticate(headers, peer)
    assert refused.value.status == 401
    assert not server.reviews or "audiences" in options


@pytest.mark.parametrize(
    ("options", "kinds"), [(TOKENS, ["TokenReview", "SubjectAccessReview"]), (PROXY, ["SubjectAccessReview"])]
)
def test_reviews_that_need_rights_depend_on_the_proofs(options: dict[str, Any], kinds: list[str]) -> None:
    assert [each.kind for each in Rbac(**options).reviews] == kinds


@pytest.mark.parametrize("result", ["jane", ZeroDivisionError("s3cret")])
async def test_function_that_fails_refuses(server: Reviewer, result: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(headers: Any, peer: str | None) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    who = rbac(server, audiences=(), authenticate=broken)
    for _ in range(50):
        with pytest.raises(ReviewUnavailable) as refused:
            await who.authenticate({}, None)
    assert refused.value.status == 503
    assert len(caplog.records) == 1


# Rights.


async def test_review_names_the_whole_user(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "pods", "shop"))
    assert await rbac(server).allows(JANE, "list", PODS, "shop")
    assert server.reviews[0]["spec"] == {
        "user": "jane",
        "uid": "u-1",
        "groups": ["shop", "system:authenticated"],
        "extra": {"scopes": ["read"]},
        "resourceAttributes": {
            "verb": "list",
            "group": "",
            "version": "v1",
            "resource": "pods",
            "namespace": "shop",
        },
    }


async def test_decision_is_kept_for_the_whole_user_only(server: Reviewer) -> None:
    who = rbac(server)
    server.rights.add(("jane", "list", "pods", ""))
    others = [
        User("jane", "u-2", JANE.groups, JANE.extra),
        User("jane", "u-1", ("shop",), JANE.extra),
        User("jane", "u-1", JANE.groups),
    ]
    for user in [JANE, *others, JANE]:
        assert await who.allows(user, "list", PODS, None)
    assert len(server.reviews) == 4


async def test_slow_answer_counts_from_its_question_on(server: Reviewer) -> None:
    server.delay = 1.5
    server.rights = {("jane", "list", "pods", "")}
    who = rbac(server, ttl=4.0)
    assert await who.allows(JANE, "list", PODS, None)
    server.rights.clear()
    await asyncio.sleep(0.6)
    assert not await who.allows(JANE, "list", PODS, None)
    assert (await who.authenticate(bearer("t-jane"), "10.1.1.1")).name == "jane"
    server.users.clear()
    await asyncio.sleep(0.6)
    with pytest.raises(Unauthenticated):
        await who.authenticate(bearer("t-jane"), "10.1.1.1")


async def test_right_that_was_taken_away_has_no_effect_after_half_of_the_ttl(server: Reviewer) -> None:
    who = rbac(server, ttl=4.0)
    server.rights.add(("jane", "list", "pods", ""))
    assert await who.allows(JANE, "list", PODS, None)
    server.rights.clear()
    await asyncio.sleep(1.8)
    assert await who.allows(JANE, "list", PODS, None)
    await asyncio.sleep(0.2)
    assert not await who.allows(JANE, "list", PODS, None)


async def test_cluster_scoped_resource_has_no_namespace(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "clusterroles", ""))
    assert await rbac(server).allows(JANE, "list", rbac_v1.CLUSTER_ROLES, "shop")


async def test_path_is_asked_for_as_a_url(server: Reviewer) -> None:
    server.rights.add(("jane", "get", "/metrics", ""))
    who = rbac(server)
    assert await who.allows_path(JANE, "get", "/metrics")
    assert not await who.allows_path(JANE, "post", "/metrics")
    assert server.reviews[0]["spec"]["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}


@pytest.mark.parametrize("failure", [refusal(403, "Forbidden", "no"), refusal(500), unreachable(transient=False)])
async def test_failure_of_the_api_server_refuses_and_is_logged_once(
    server: Reviewer, failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.failure = failure
    who = rbac(server)
    for _ in range(20):
        assert not await who.allows(JANE, "list", PODS, None)
    with pytest.raises(ReviewUnavailable):
        await who.authenticate(bearer("t-jane"), None)
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len([each for each in lines if "access reviews fail" in each]) == 1
    assert len([each for each in lines if "token reviews fail" in each]) == 1
    asked = Counter(each["kind"] for each in server.reviews)
    assert asked["SubjectAccessReview"] < 20


async def test_refusal_for_lack_of_rights_names_the_remedy(server: Reviewer, caplog: pytest.LogCaptureFixture) -> None:
    server.failure = refusal(403, "Forbidden", "cannot create")
    assert not await rbac(server).allows(JANE, "list", PODS, None)
    assert "system:auth-delegator" in caplog.text
    assert [each.levelno for each in caplog.records] == [logging.WARNING]


async def test_server_that_does_not_answer_refuses_after_some_seconds(server: Reviewer) -> None:
    server.delay = 3600
    clock = asyncio.get_running_loop().time
    began = clock()
    assert not await rbac(server).allows(JANE, "list", PODS, None)
    assert clock() - began < 6


async def test_equal_questions_are_one_review(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "pods", ""))
    who = rbac(server)
    found = await asyncio.gather(*(who.allows(JANE, "list", PODS, None) for _ in range(100)))
    assert found == [True] * 100
    assert len(server.reviews) == 1


async def test_cancelled_asker_leaves_the_review_to_the_others(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "pods", ""))
    who = rbac(server)
    first, second = (asyncio.create_task(who.allows(JANE, "list", PODS, None)) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    assert await second
    assert len(server.reviews) == 1


async def test_review_ends_with_its_last_asker(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "pods", ""))
    who = rbac(server)
    only = asyncio.create_task(who.allows(JANE, "list", PODS, None))
    await asyncio.sleep(0.05)
    only.cancel()
    await asyncio.wait([only])
    await asyncio.sleep(0)
    assert not [each for each in asyncio.all_tasks() if each.get_name().endswith("review")]
    assert await who.allows(JANE, "list", PODS, None)


@pytest.mark.parametrize(("options", "rate"), [(TOKENS, 10), (PROXY, 20)])  # the other half is for tokens
async def test_reviews_keep_to_their_rate(server: Reviewer, options: dict[str, Any], rate: int) -> None:
    who = Rbac(Client(server), reviews_per_second=20.0, **options)
    users = [User(f"user-{number}") for number in range(200)]
    found = await asyncio.gather(*(who.allows(user, "list", PODS, None) for user in users))
    assert not any(found)
    assert max(Counter(int(each - server.times[0]) for each in server.times[rate:]).values()) <= rate + 1
    assert 5.5 * rate <= len(server.times) <= 6.5 * rate  # what begins within 5 s; the others are refused at once


async def test_pause_gives_no_more_than_a_second_of_turns(server: Reviewer) -> None:
    who = rbac(server, reviews_per_second=20.0)
    assert not await who.allows(JANE, "list", PODS, None)
    await asyncio.sleep(100)
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(who.allows(User(f"user-{number}"), "list", PODS, None) for number in range(30)))
    at_once = [each for each in server.times if each - began < 0.05]
    assert 9 <= len(at_once) - 1 <= 11


async def test_failure_is_the_answer_for_a_second(server: Reviewer) -> None:
    server.failure = refusal(403, "Forbidden", "no")
    who = rbac(server)
    assert not await who.allows(JANE, "list", PODS, None)
    server.failure = None
    server.rights.add(("jane", "list", "pods", ""))
    await asyncio.sleep(0.9)
    assert not await who.allows(JANE, "list", PODS, None)
    await asyncio.sleep(0.2)
    assert await who.allows(JANE, "list", PODS, None)


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": True, "denied": False}, True),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": False}, False),
        ({"allowed": "true"}, False),
        ({}, False),
        (None, False),
    ],
)
async def test_only_a_clear_yes_allows(server: Reviewer, status: Any, allowed: bool) -> None:
    server.failure = Answer(201, json.dumps({"status": status}).encode())
    assert await rbac(server).allows(JANE, "list", PODS, None) is allowed


@pytest.mark.parametrize("status", [None, {}, {"authenticated": False}, {"authenticated": True}])
async def test_only_a_clear_yes_proves_a_user(server: Reviewer, status: Any) -> None:
    server.failure = Answer(201, json.dumps({"status": status}).encode())
    with pytest.raises(Unauthenticated, match="for the audience 'dashboard'") as refused:
        await rbac(server).authenticate(bearer("t-jane"), None)
    assert refused.value.status == 401


async def test_flood_of_strange_tokens_does_not_stop_known_users(server: Reviewer) -> None:
    server.rights.add(("jane", "list", "pods", ""))
    who = rbac(server, reviews_per_second=20.0)
    await who.authenticate(bearer("t-jane"), None)
    flood = [asyncio.create_task(who.authenticate(bearer(f"strange-{number}"), None)) for number in range(1_000)]
    await asyncio.sleep(0)
    assert (await who.authenticate(bearer("t-jane"), None)).name == "jane"
    assert await who.allows(JANE, "list", PODS, None)
    refused = await asyncio.gather(*flood, return_exceptions=True)
    assert all(isinstance(each, Unauthenticated) for each in refused)
    busy = [each for each in refused if isinstance(each, ReviewUnavailable)]
    assert len(busy) > 900
    assert busy[0].headers["Retry-After"]
    assert len(server.reviews) < 100


async def test_answers_that_were_used_longest_ago_are_dropped(
    server: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer.authorization.rbac._DECISIONS", 2)
    who = rbac(server)
    for name in ("ann", "bob", "ann", "eve", "ann", "eve", "bob"):
        await who.allows(User(name), "list", PODS, None)
    assert [each["spec"]["user"] for each in server.reviews] == ["ann", "bob", "eve", "bob"]


async def test_unbound_rbac_refuses_until_it_has_a_client(server: Reviewer, caplog: pytest.LogCaptureFixture) -> None:
    server.rights.add(("jane", "list", "pods", ""))
    who = Rbac(audiences=["dashboard"])
    assert not await who.allows(JANE, "list", PODS, None)
    assert "has no client" in caplog.text
    who.bind(Client(server))
    assert await who.allows(JANE, "list", PODS, None)


async def test_given_client_is_not_replaced(server: Reviewer) -> None:
    who = rbac(server)
    who.bind(Client(Reviewer()))
    await who.allows(JANE, "list", PODS, None)
    assert len(server.reviews) == 1


# What a request may select.


async def test_all_namespaces_are_one_question_a_verb(server: Reviewer) -> None:
    server.rights |= {("jane", verb, "pods", "") for verb in ("list", "watch")}
    await permitted(rbac(server), JANE, [PODS])
    assert len(server.reviews) == 2


async def test_refusal_names_the_parameter(server: Reviewer) -> None:
    server.rights |= {("jane", verb, "pods", "shop") for verb in ("list", "watch")}
    who = rbac(server)
    with pytest.raises(AccessDenied, match=r"'jane' may not list pods in all namespaces: name .* \?namespace=NAME"):
        await permitted(who, JANE, [PODS])
    await permitted(who, JANE, [PODS], ["shop"])
    with pytest.raises(AccessDenied, match="in namespace 'bank'"):
        await permitted(who, JANE, [PODS], ["shop", "bank"])
    with pytest.raises(AccessDenied, match="may not list clusterroles"):
        await permitted(who, JANE, [PODS, rbac_v1.CLUSTER_ROLES], ["shop"])


async def test_own_decider_gets_no_namespace_for_a_cluster_scoped_resource() -> None:
    asked: list[tuple[str, str | None]] = []

    class Mine:
        ttl = 10.0

        async def authenticate(self, headers: Mapping[str, str], peer: str | None) -> User:
            return JANE

        async def allows(self, user: User, verb: str, resource: Resource[Any], namespace: str | None) -> bool:
            asked.append((resource.kind, namespace))
            return True

        async def allows_path(self, user: User, verb: str, path: str) -> bool:
            return True

    await permitted(Mine(), JANE, [PODS, rbac_v1.CLUSTER_ROLES], ["shop", "bank"], ["list"])
    assert asked == [("Pod", "shop"), ("Pod", "bank"), ("ClusterRole", None)]


async def test_too_many_namespaces_are_refused_unasked(server: Reviewer) -> None:
    with pytest.raises(AccessDenied, match="21 are named, and at most 20"):
        await permitted(rbac(server), JANE, [PODS], [f"n-{number}" for number in range(21)])
    assert not server.reviews
    await permitted(EVERYBODY, JANE, [PODS], [f"n-{number}" for number in range(20)])


async def test_everybody_may_see_all() -> None:
    user = await EVERYBODY.authenticate({}, None)
    assert user.name == "system:anonymous"
    await permitted(EVERYBODY, user, [PODS])
    assert await EVERYBODY.allows_path(user, "get", "/metrics")


# Options.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "audiences="),
        ({"audiences": []}, "audiences="),
        ({"audiences": "dashboard"}, "audiences must be names"),
        ({"audiences": [""]}, "audiences must be names"),
        ({"user_header": "x-user"}, "from_peers"),
        ({"audiences": ["a"], "from_peers": ["10.0.0.7"]}, "user_header"),
        ({"user_header": "x-user", "from_peers": "10.0.0.7"}, "from_peers must be addresses"),
        ({"user_header": "x-user", "from_peers": ["0.0.0.0/0"]}, "has all addresses"),
        ({"audiences": ["a"], "groups_header": "x-groups"}, "groups_header needs user_header"),
        ({"authenticate": "jane"}, "authenticate must be a function"),
        ({"audiences": ["a"], "ttl": 0.1}, "ttl"),
        ({"audiences": ["a"], "reviews_per_second": 0.0}, "reviews_per_second"),
    ],
)
def test_invalid_options_name_field_and_remedy(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        Rbac(**options)
