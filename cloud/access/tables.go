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

	// Whoever is signed in, about themselves.
	{Name: "POST /v1/logout", Roles: people},
	{Name: "GET /v1/me", Roles: people},
	{Name: "POST /v1/me/password", Roles: people},

	// The fleet.
	{Name: "GET /v1/fleet", Roles: kit.Staff},
	{Name: "GET /v1/watch", Roles: kit.Staff},
	{Name: "GET /v1/things", Roles: kit.Staff},
	{Name: "POST /v1/things", Roles: kit.Admins},
	{Name: "GET /v1/things/{thing}", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/doctor", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/history", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/certificates", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/jdocs", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/jdocs/{doc}", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/jdocs/{doc}/history", Roles: kit.Staff},
	{Name: "PATCH /v1/things/{thing}/jdocs/{doc}", Roles: kit.Changers},
	{Name: "GET /v1/things/{thing}/commands", Roles: kit.Staff},
	{Name: "GET /v1/things/{thing}/commands/{id}", Roles: kit.Staff},
	{Name: "POST /v1/things/{thing}/commands", Roles: kit.Changers},
	{Name: "GET /v1/events", Roles: kit.Staff},
	{Name: "GET /v1/events/tail", Roles: kit.Staff},

	// Releases.
	{Name: "GET /v1/releases", Roles: kit.Staff},
	{Name: "POST /v1/releases", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},
	{Name: "GET /v1/things/{thing}/ota", Roles: kit.Staff},
	{Name: "PUT /v1/things/{thing}/ota/desired", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},
	{Name: "PUT /v1/ota/desired/{species}", Roles: []kit.Role{kit.RoleReleaseManager, kit.RoleAdmin}},

	// What people did.
	{Name: "GET /v1/audit", Roles: kit.Admins},

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
	{Name: "command/pull", Roles: things},
	{Name: "command/result", Roles: things},
})
