"""`Rbac`: users and their rights, as the API server of a cluster knows them."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import msgspec

from aioinformer.authorization.requests import NamedPeers, bearer_token, check_same_origin, forwarded_user, without
from aioinformer.authorization.reviews import Pace, Reviews
from aioinformer.authorization.users import AccessDenied, ReviewUnavailable, Unauthenticated, User
from aioinformer.client.client import Client
from aioinformer.errors import USER_ERRORS, AioinformerError, Forbidden, OptionError, UsageError
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport.auth.secret import PrivateDict, Secret

_log = get_logger("aioinformer.authorization")

#: Returns the user who sends a request, from its headers and the address of the peer; None for no user.
Authenticate: TypeAlias = Callable[[Mapping[str, str], str | None], User | Awaitable[User | None] | None]

#: How many users of tokens, and how many decisions are kept: about 1 KB each.
_USERS: Final = 4_096
_DECISIONS: Final = 20_000
#: Seconds for a review, with all its repetitions.
_TIMEOUT: Final = 5.0
#: The part of the reviews that questions about tokens may take: strangers send these, and must not stop known users.
_OF_TOKENS: Final = 0.5

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_TOKEN_REVIEWS: Final[Resource[Any]] = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False, decoder=_decode
)
_ACCESS_REVIEWS: Final[Resource[Any]] = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False, decoder=_decode
)


class _Question(msgspec.Struct, frozen=True):
    """Whether a user may do something: the key of a decision, so all that a decision depends on is in it."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""

    def spec(self) -> dict[str, Any]:
        """Return the `spec` of a SubjectAccessReview."""
        user = self.user
        spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = user.extra
        if self.path:
            spec["nonResourceAttributes"] = {"verb": self.verb, "path": self.path}
        else:
            names = ("verb", "group", "version", "resource", "namespace")
            spec["resourceAttributes"] = {name: getattr(self, name) for name in names}
        return spec


class Rbac:
    """Who sends a request, and what that user may see, as the cluster's API server decides it.

        who = Rbac(audiences=["dashboard"])

    - A user is proven by a bearer token, which the API server reviews for the named audiences; or by headers of a proxy
      at a named address, from everywhere else they mean nothing; or by your own function.
    - A user's rights are those of the cluster: one SubjectAccessReview for each user, verb, resource and namespace.
    - What cannot be found out is refused. A right that was taken away has no effect any more after `ttl` seconds.
    - Tokens are kept as hashes only, and appear in no log and no `repr`.
    - Equal questions at the same time are one review. If the turn of a review would come after more than 5 seconds, it
      is refused.
    - Without a bearer token, a request that a page of another origin sent is refused: a browser adds cookies by itself.

    The service account of the process needs the right to create `tokenreviews` and `subjectaccessreviews`; the
    ClusterRole `system:auth-delegator` has both.

    Args:
        client: asks the API server; None for that of the program part that uses this object.
        audiences: for which a token must have been issued. Without them, the token of any pod would be accepted.
        user_header: a header in which a proxy names the user, such as "X-Remote-User".
        groups_header: a header in which the proxy names the user's groups; "" for none.
        from_peers: the addresses or networks of the proxies, "10.0.0.7" or "10.0.0.0/24".
        authenticate: your function: gets the headers, as `Who.authenticate` does, and the address of the peer; returns
            a `User`, None for no user, or an awaitable of these. A bearer token has no other meaning than you give it.
        ttl: seconds within which a right that was taken away has no effect any more.
        reviews_per_second: sent to the API server at most; at most half of them are about tokens.

    Raises:
        OptionError: an argument is invalid, or nothing says how a user is proven.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        audiences: Collection[str] = (),
        user_header: str = "",
        groups_header: str = "",
        from_peers: Iterable[str] = (),
        authenticate: Authenticate | None = None,
        ttl: float = 10.0,
        reviews_per_second: float = 100.0,
    ) -> None:
        if isinstance(audiences, str) or not all(audiences):
            raise OptionError(f'audiences must be names, such as ["dashboard"], not {audiences!r}')
        if isinstance(from_peers, str):
            raise OptionError(f'from_peers must be addresses, such as ["{from_peers}"], not {from_peers!r}')
        peers = list(from_peers)
        if not audiences and not user_header and authenticate is None:
            raise OptionError(
                'Rbac: name the audiences of tokens, audiences=["dashboard"]: without them, the token of any pod would '
                "be accepted. Or name the header of a proxy, user_header= and from_peers=, or a function, authenticate="
            )
        if bool(user_header) is not bool(peers):
            raise OptionError(
                "user_header and from_peers belong together: the header means something only if it comes from the "
                'proxies whose addresses you name, from_peers=["10.0.0.7"]'
            )
        if groups_header and not user_header:
            raise OptionError("groups_header needs user_header, which names the user")
        if authenticate is not None and not callable(authenticate):
            raise OptionError(f"authenticate must be a function of headers and peer, not {authenticate!r}")
        if not 1.0 <= ttl <= 300.0:
            raise OptionError(f"ttl must be seconds from 1 to 300, not {ttl!r}")
        if not 1.0 <= reviews_per_second <= 10_000.0:
            raise OptionError(f"reviews_per_second must be a number from 1 to 10,000, not {reviews_per_second!r}")
        self.ttl = ttl
        self._audiences = tuple(audiences)
        self._user_header = user_header.lower()
        self._groups_header = groups_header.lower()
        self._peers = NamedPeers(peers)
        self._authenticate = authenticate
        self._rate = reviews_per_second
        self._given = client is not None
        self._client: Client | None = None
        self._errors = RepeatedErrors(_log)
        #: For the hashes of tokens: without it, they say nothing.
        self._salt = os.urandom(16)
        self._begin(client)

    def __repr__(self) -> str:
        ways = {"tokens": self._audiences, "headers of a proxy": self._user_header, "a function": self._authenticate}
        return f"<Rbac by {', '.join(name for name, given in ways.items() if given)}>"

    @property
    def reviews(self) -> list[Resource[Any]]:
        """What is created on the API server, for which the process needs the right."""
        return [_TOKEN_REVIEWS, _ACCESS_REVIEWS] if self._audiences else [_ACCESS_REVIEWS]

    def bind(self, client: Client) -> None:
        """Ask by this client, unless one was given. The program part that uses this object calls it when it starts."""
        if not self._given:
            self._begin(client)

    def _begin(self, client: Client | None) -> None:
        """Ask by a client from now on, and keep no answer of another one."""
        self._client = None if client is None else client.with_options(timeout=_TIMEOUT)
        keep = self.ttl / 2  # the other half is that of a stream, which asks again after this time
        of_tokens = Pace(self._rate * _OF_TOKENS)
        of_rights = Pace(self._rate * (1 - _OF_TOKENS) if self._audiences else self._rate)
        self._users: Reviews[bytes, User] = Reviews("token", keep=keep, most=_USERS, pace=of_tokens)
        self._decisions: Reviews[_Question, bool] = Reviews("access", keep=keep, most=_DECISIONS, pace=of_rights)

    # Who sends a request.

    async def authenticate(self, headers: Mapping[str, str], peer: str | None) -> User:
        """Return the user who sends a request, see `Who.authenticate`.

        Raises:
            Unauthenticated: the request does not prove it; `ReviewUnavailable`, if that cannot be found out now.
            AccessDenied: a page of another origin sent the request.
        """
        token = bearer_token(headers)
        if not token:
            check_same_origin(headers)
        if peer in self._peers:
            forwarded = forwarded_user(headers, self._user_header, self._groups_header)
            if forwarded is not None:
                return forwarded
        else:  # anybody may send these
            headers = without(headers, self._user_header, self._groups_header)
        if self._authenticate is not None:
            own = await self._by_function(headers, peer)
            if own is not None:
                return own
        if token and self._audiences:
            return await self._user_of(token)
        raise Unauthenticated(self._missing(token, peer))

    def _missing(self, token: Secret, peer: str | None) -> str:
        """Return which proof a request lacks."""
        if self._audiences:
            named = " or ".join(map(repr, self._audiences))
            return f"a bearer token for the audience {named} is required, in the header Authorization"
        if self._authenticate is not None:
            return "the service does not know the sender of this request"
        if peer not in self._peers:
            return f"the header {self._user_header} means nothing from {peer or 'an unknown peer'}: ask by the proxy"
        return f"the proxy names no user in the header {self._user_header}"

    async def _by_function(self, headers: Mapping[str, str], peer: str | None) -> User | None:
        assert self._authenticate is not None
        try:
            found: Any = self._authenticate(headers, peer)
            if hasattr(found, "__await__"):
                found = await found
        except (Unauthenticated, AccessDenied):
            raise
        except USER_ERRORS as error:
            self._errors.report("authenticate", error, "the function authenticate of Rbac raised: request refused")
            raise ReviewUnavailable("the service cannot say now who sends this request") from None
        if found is not None and not isinstance(found, User):
            mistake = UsageError(f"authenticate must return a User or None, not {type(found).__name__}")
            self._errors.report("authenticate", mistake, "Rbac: %s; request refused", mistake)
            raise ReviewUnavailable("the service cannot say now who sends this request")
        return found

    async def _user_of(self, token: Secret) -> User:
        digest = blake2b(token.text.encode(), key=self._salt).digest()
        try:
            return await self._users.get(digest, lambda: self._review_token(token))
        except (Unauthenticated, AccessDenied):
            raise
        except AioinformerError as error:
            self._report("token reviews", error)
            raise ReviewUnavailable("the API server does not review tokens now; try again in a moment") from None

    async def _review_token(self, token: Secret) -> User:
        spec = PrivateDict({"token": token.text, "audiences": list(self._audiences)})
        status = (await self._ask(_TOKEN_REVIEWS, spec)).get("status") or {}
        if not status.get("authenticated"):
            # The server's own text could quote the token.
            raise Unauthenticated(f"the API server does not accept this token for {self._named()}; it may have expired")
        if not set(status.get("audiences") or ()) & set(self._audiences):
            # A server that does not know audiences accepts the token of any pod.
            raise Unauthenticated(f"the API server accepts this token, but not for {self._named()}")
        return msgspec.convert(status.get("user") or {}, User)

    def _named(self) -> str:
        return f"the audience {' or '.join(map(repr, self._audiences))}"

    # What a user may do.

    async def allows(self, user: User, verb: str, resource: Resource[Any], namespace: str | None) -> bool:
        """Return whether a user may do something with all objects of a resource, see `Who.allows`."""
        within = namespace or "" if resource.namespaced else ""
        return await self._decide(_Question(user, verb, resource.group, resource.version, resource.plural, within))

    async def allows_path(self, user: User, verb: str, path: str) -> bool:
        """Return whether a user may request a URL that belongs to no resource, see `Who.allows_path`."""
        return await self._decide(_Question(user, verb, path=path))

    async def _decide(self, question: _Question) -> bool:
        try:
            return await self._decisions.get(question, lambda: self._review_access(question))
        except AioinformerError as error:
            self._report("access reviews", error)
            return False

    async def _review_access(self, question: _Question) -> bool:
        status = (await self._ask(_ACCESS_REVIEWS, question.spec())).get("status") or {}
        return status.get("allowed") is True and not status.get("denied")

    async def _ask(self, reviews: Resource[Any], spec: dict[str, Any]) -> dict[str, Any]:
        client = self._client
        if client is None:
            raise UsageError("Rbac has no client: pass one, or start the part of the program that uses it first")
        body = PrivateDict(apiVersion=reviews.api_version, kind=reviews.kind, spec=spec)
        found: dict[str, Any] = await client.resource(reviews).create(body)
        return PrivateDict(found)

    def _report(self, what: str, error: AioinformerError) -> None:
        if isinstance(error, Forbidden):
            remedy = "; grant this process the ClusterRole system:auth-delegator"
        else:
            remedy = ""
        text = "Rbac: %s fail, so requests are refused: %s%s"
        self._errors.report(what, error, text, what, error, remedy, level=logging.WARNING)
