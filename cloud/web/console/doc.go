// Package console is the operators' web pages: what the fleet needs, the fleet as a table, one robot's life, settings, commands, events and
// access, what robots report as they do; certificates, operators, audit.
//
// Pages are made on the server from templates; a little script, without which they work too, keeps them live: the server says now and then
// that something changed (/live, server-sent events), the script fetches the page again and puts in what differs. So there is one
// rendering, whatever changes, and its cost does not grow with the fleet: the table is one page of a hundred, whatever is selected.
//
// Everything is embedded and comes from this host; the Content-Security-Policy allows nothing else, and no inline script or style.
// What a robot says is text, never markup. Colour is never the only sign: words or a table beside a chart give the same facts.
//
// A form does what the same operation of the public API does: the same service, the same line in the audit log before it, the roles of
// access.HTTP. Its problem is shown beside it, with what was typed. No address has to be typed: each page leads to the next.
//
//	console.go   Mount, who may, forms                 overview.go  what needs attention; keys and filters
//	fleet.go     the table, facets, tags               bulk.go      saved filters, and one thing done to many robots
//	thing.go     one robot: its frame, doctor, access  life.go      timeline and activity
//	settings.go  documents, wanted and reported        orders.go    commands
//	events.go    events of a robot, live tail          live.go      /live
//	certificates.go operators.go audit.go login.go me.go  one page each    view.go  what pages show, pure functions
//	page/        what is shared with the owners' pages (cloud/web/companion)   chart/  drawings, of a simulated robot's world too
//	pages/       templates, parts/ what they share     assets/      style.css (design tokens), app.js, icon.svg
package console
