// Package console is the operators' web pages: log in, the fleet with live presence, one robot with its doctor, its certificates, owner,
// apps and tokens; certificates, operators, audit.
//
// Pages are made on the server from templates; a little script, without which they work too, keeps them live: the server says at most
// twice a second that something changed (/live, server-sent events), the script fetches the page again and puts in what differs. So
// there is one rendering, whatever changes, and its cost does not grow with the fleet.
//
// Everything is embedded and comes from this host; the Content-Security-Policy allows nothing else, and no inline script or style.
// What a robot says is text, never markup. Colour is never the only sign.
//
// A form does what the same operation of the public API does: the same service, the same line in the audit log before it, the roles of
// access.HTTP. Its problem is shown beside it, with what was typed.
//
//	console.go  Mount, who may, forms    thing.go certificates.go audit.go operators.go  one page each    view.go  what pages show, pure functions
//	live.go     /live                    page/  what is shared with the owners' pages (cloud/companion)
//	pages/      templates             assets/  style.css (design tokens), app.js, icon.svg
package console
