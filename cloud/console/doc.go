// Package console is the operators' web pages: log in, the fleet with live presence, one robot.
//
// Pages are made on the server from templates; a little script, without which they work too, keeps them live: the server says at most
// twice a second that something changed (/live, server-sent events), the script fetches the page again and puts in what differs. So
// there is one rendering, whatever changes, and its cost does not grow with the fleet.
//
// Everything is embedded and comes from this host; the Content-Security-Policy allows nothing else, and no inline script or style.
// What a robot says is text, never markup. Colour is never the only sign.
//
//	console.go  Mount, handlers       view.go  what pages show, pure functions    live.go  /live
//	pages/      templates             assets/  style.css (design tokens), app.js, icon.svg
package console
