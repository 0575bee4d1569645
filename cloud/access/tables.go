package access

import "kennel/infra/kit"

// HTTP is the public API and the pages, by the route's pattern.
var HTTP = table([]Rule{
	// Anybody: what decides is in the request.
	{Name: "/ok", By: "nothing: the connection check of robots (VEC-CLD-07)"},
	{Name: "GET /v1/health", By: "nothing: a load balancer asks"},
	{Name: "GET /readyz", By: "nothing: a load balancer asks"},
	{Name: "POST /v1/enroll", By: "the claim secret"},
	{Name: "POST /v1/renew", By: "the key of an earlier certificate"},
	{Name: "POST /v1/req/{service}/{method}", By: "the device certificate"},
	{Name: "POST /v1/login", By: "e-mail and password"},
	{Name: "GET /v1/crl/{file}", By: "nothing: lists of revoked certificates are signed and public"},
	{Name: "GET /.well-known/jwks.json", By: "nothing: public keys of access tokens"},
	{Name: "GET /vic/{esn}", By: "nothing: a robot's certificate, to be pinned (VEC-AUTH-03)"},

	// Accounts of people: letters and passwords decide.
	{Name: "POST /v1/account/signup", By: "nothing: the letter says the rest"},
	{Name: "POST /v1/account/verify", By: "the code of a letter, and the password"},
	{Name: "POST /v1/account/verify/again", By: "nothing: the letter says the rest"},
	{Name: "POST /v1/account/reset", By: "nothing: the letter says the rest"},
	{Name: "POST /v1/account/reset/confirm", By: "the code of a letter"},
	{Name: "POST /v1/account/email/confirm", By: "the code of a letter"},
	{Name: "GET /account/signup", By: "nothing: a form", Page: true},
	{Name: "POST /account/signup", By: "nothing: the letter says the rest", Page: true},
	{Name: "GET /account/verify", By: "nothing: a form", Page: true},
	{Name: "POST /account/verify", By: "the code of a letter, and the password", Page: true},
	{Name: "GET /account/forgot", By: "nothing: a form", Page: true},
	{Name: "POST /account/forgot", By: "nothing: the letter says the rest", Page: true},
	{Name: "GET /account/reset", By: "nothing: a form", Page: true},
	{Name: "POST /account/reset", By: "the code of a letter", Page: true},
	{Name: "GET /account/email", By: "nothing: a form", Page: true},
	{Name: "GET /account/password", By: "nothing: a form", Page: true},
	{Name: "POST /account/password", By: "a session and its password", Page: true},
	{Name: "POST /account/email", By: "the code of a letter", Page: true},

	// What the original app and SDK tools call; an app key, and a password or a session, decide.
	{Name: "POST /1/sessions", By: "app key, e-mail and password"},
	{Name: "POST /1/sessions/reup", By: "app key and session"},
	{Name: "POST /1/sessions/delete", By: "app key and session"},
	{Name: "POST /1/users", By: "app key: the letter says the rest"},
	{Name: "GET /1/users/{userid}", By: "app key and session"},
	{Name: "PATCH /1/users/{userid}", By: "app key and session"},
	{Name: "POST /1/users/{userid}/patch", By: "app key and session"},
	{Name: "POST /1/users/{userid}/verify_email", By: "app key and session"},
	{Name: "POST /1/reset_user_password", By: "app key: the letter says the rest"},
	{Name: "GET /1/username-check", By: "app key: it tells nothing"},
	{Name: "GET /1/usernames/{username}", By: "app key: it tells nothing"},
	{Name: "GET /1/locations", By: "nothing: a list of places (VEC-END-02)"},

	// Whoever is signed in, about themselves.
	{Name: "POST /v1/logout", Roles: people},
	{Name: "GET /v1/me", Roles: people},
	{Name: "POST /v1/me/password", Roles: people},

	{Name: "GET /v1/account", Roles: people},
	{Name: "PATCH /v1/account", Roles: people},
	{Name: "POST /v1/account/email", Roles: people},
	{Name: "GET /v1/account/sessions", Roles: people},
	{Name: "DELETE /v1/account/sessions", Roles: people},
	{Name: "DELETE /v1/account/sessions/{id}", Roles: people},
	{Name: "POST /v1/account/apps", Roles: people},
	{Name: "GET /v1/account/export", Roles: people},
	{Name: "POST /v1/account/delete", Roles: people},

	// Owners and their robots.
	{Name: "GET /v1/my/robots", Roles: owners},
	{Name: "POST /v1/my/robots/claim", Roles: owners},
	{Name: "PATCH /v1/my/robots/{thing}", Roles: owners, Own: true},
	{Name: "DELETE /v1/my/robots/{thing}", Roles: owners, Own: true},
	{Name: "POST /v1/my/robots/{thing}/transfer", Roles: owners, Own: true},
	{Name: "GET /v1/my/transfers", Roles: owners},
	{Name: "POST /v1/my/transfers/{id}/accept", Roles: owners},
	{Name: "DELETE /v1/my/transfers/{id}", Roles: owners},
	{Name: "GET /v1/things/{thing}/tokens", Roles: ownerOrStaff, Own: true},
	{Name: "DELETE /v1/things/{thing}/tokens", Roles: ownerOrChangers, Own: true},
	{Name: "DELETE /v1/things/{thing}/tokens/{token}", Roles: ownerOrChangers, Own: true},
	{Name: "GET /v1/things/{thing}/apps", Roles: ownerOrStaff, Own: true},
	{Name: "DELETE /v1/things/{thing}/apps", Roles: ownerOrChangers, Own: true},
	{Name: "DELETE /v1/things/{thing}/apps/{app}", Roles: ownerOrChangers, Own: true},
	{Name: "POST /v1/things/{thing}/release", Roles: append([]kit.Role{kit.RoleOwner}, kit.Admins...), Own: true},
	{Name: "GET /v1/things/{thing}/owner", Roles: kit.Staff},
	{Name: "DELETE /v1/things/{thing}/owner", Roles: supporters},

	// Identities of robots.
	{Name: "POST /v1/things/batch", Roles: kit.Admins},
	{Name: "POST /v1/things/{thing}/revoke", Roles: kit.Admins},
	{Name: "GET /v1/revocations", Roles: kit.Staff},
	{Name: "GET /v1/waiting", Roles: kit.Staff},
	{Name: "POST /v1/waiting/{thing}/approve", Roles: supporters},
	{Name: "POST /v1/waiting/{thing}/refuse", Roles: supporters},
	{Name: "GET /v1/batches", Roles: kit.Staff},
	{Name: "PUT /v1/batches/{batch}", Roles: kit.Admins},
	{Name: "POST /v1/batches/{batch}/disable", Roles: kit.Admins},
	{Name: "POST /v1/batches/{batch}/enable", Roles: kit.Admins},
	{Name: "GET /v1/factory-certificates", Roles: kit.Staff},
	{Name: "POST /v1/factory-certificates/revoke", Roles: kit.Admins},

	// The fleet.
	{Name: "GET /v1/fleet", Roles: kit.Staff},
	{Name: "GET /v1/watch", Roles: kit.Staff},
	{Name: "GET /v1/things", Roles: kit.Staff},
	{Name: "POST /v1/things", Roles: kit.Admins},
	{Name: "GET /v1/things/{thing}", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/things/{thing}/doctor", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/history", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/things/{thing}/certificates", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/jdocs", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/things/{thing}/jdocs/{doc}", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/things/{thing}/jdocs/{doc}/history", Roles: ownerOrStaff, Own: true},
	{Name: "PATCH /v1/things/{thing}/jdocs/{doc}", Roles: ownerOrChangers, Own: true},
	{Name: "GET /v1/things/{thing}/commands", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/things/{thing}/commands/{id}", Roles: ownerOrStaff, Own: true},
	{Name: "POST /v1/things/{thing}/commands", Roles: ownerOrChangers, Own: true},
	{Name: "GET /v1/events", Roles: ownerOrStaff, Own: true},
	{Name: "GET /v1/events/tail", Roles: ownerOrStaff, Own: true},

	// Releases.
	{Name: "GET /v1/releases", Roles: kit.Staff},
	{Name: "POST /v1/releases", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},
	{Name: "GET /v1/things/{thing}/ota", Roles: kit.Staff},
	{Name: "PUT /v1/things/{thing}/ota/desired", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},
	{Name: "PUT /v1/ota/desired/{species}", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},

	// People of the staff.
	{Name: "GET /v1/operators", Roles: kit.Admins},
	{Name: "POST /v1/operators", Roles: kit.Admins},
	{Name: "PATCH /v1/operators/{id}", Roles: kit.Admins},
	{Name: "DELETE /v1/operators/{id}", Roles: kit.Admins},
	{Name: "POST /v1/operators/{id}/password", Roles: kit.Admins},
	{Name: "GET /v1/operators/{id}/sessions", Roles: kit.Admins},
	{Name: "DELETE /v1/operators/{id}/sessions", Roles: kit.Admins},
	{Name: "DELETE /v1/operators/{id}/sessions/{session}", Roles: kit.Admins},

	// What people did.
	{Name: "GET /v1/audit", Roles: kit.Admins},
	{Name: "GET /v1/audit/verify", Roles: kit.Admins},

	// The console.
	{Name: "GET /{$}", Roles: kit.Staff, Page: true},
	{Name: "GET /things/{thing}", Roles: kit.Staff, Page: true},
	{Name: "GET /live", Roles: kit.Staff, Page: true},
	{Name: "GET /login", By: "nothing: the page that signs in", Page: true},
	{Name: "POST /login", By: "e-mail and password", Page: true},
	{Name: "POST /logout", By: "the session it ends", Page: true},
	{Name: "GET /assets/{file}", By: "nothing: styles, scripts and pictures of the pages", Page: true},
})

// things is who asks over MQTT: a thing, for itself alone, as the broker has proved (VEC-FLE-01).
var things = []kit.Role{kit.RoleThing}

// Requests is what robots may ask over MQTT, and over HTTPS what is too large for it, by service/method.
var Requests = table([]Rule{
	{Name: "jdocs/read", Roles: things},
	{Name: "jdocs/write", Roles: things},
	{Name: "jdocs/delete", Roles: things},
	{Name: "ota/desired", Roles: things},
	{Name: "jdocs/revision", Roles: things},
	{Name: "token/associate", Roles: things},
	{Name: "token/reassociate", Roles: things},
	{Name: "token/secondary", Roles: things},
	{Name: "token/refresh", Roles: things},
	{Name: "token/disassociate", Roles: things},
	{Name: "token/certificate", Roles: things},
	{Name: "owner/code", Roles: things},
	{Name: "owner/wiped", Roles: things},
	{Name: "owner/status", Roles: things},
	{Name: "command/pull", Roles: things},
	{Name: "command/result", Roles: things},
})
